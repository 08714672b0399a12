
! Functions that the library has, and whose interface its module lacks.
module replay_whole
  use, intrinsic :: iso_fortran_env, only: int8, int16, int64
  implicit none
  private
  public :: put_var_all

  interface put_var_all
    function nfmpi_put_var_text_all(file, variable, values) result(status)
      integer, intent(in) :: file, variable
      character(len=*), intent(in) :: values
      integer :: status
    end function nfmpi_put_var_text_all

    function nfmpi_put_var_int1_all(file, variable, values) result(status)
      import :: int8
      integer, intent(in) :: file, variable
      integer(int8), intent(inout) :: values(*)
      integer :: status
    end function nfmpi_put_var_int1_all

    function nfmpi_put_var_int2_all(file, variable, values) result(status)
      import :: int16
      integer, intent(in) :: file, variable
      integer(int16), intent(inout) :: values(*)
      integer :: status
    end function nfmpi_put_var_int2_all

    function nfmpi_put_var_int_all(file, variable, values) result(status)
      integer, intent(in) :: file, variable
      integer, intent(inout) :: values(*)
      integer :: status
    end function nfmpi_put_var_int_all

    function nfmpi_put_var_int8_all(file, variable, values) result(status)
      import :: int64
      integer, intent(in) :: file, variable
      integer(int64), intent(inout) :: values(*)
      integer :: status
    end function nfmpi_put_var_int8_all

    function nfmpi_put_var_real_all(file, variable, values) result(status)
      integer, intent(in) :: file, variable
      real, intent(inout) :: values(*)
      integer :: status
    end function nfmpi_put_var_real_all

    function nfmpi_put_var_double_all(file, variable, values) result(status)
      integer, intent(in) :: file, variable
      double precision, intent(inout) :: values(*)
      integer :: status
    end function nfmpi_put_var_double_all
  end interface put_var_all
end module replay_whole

! PnetCDF. Its interface for Fortran has dimensions in the opposite order and counts from 1, so that files are as those
! of programs in C.
module replay_library
  use pnetcdf
  use replay_common
  use replay_whole
  implicit none

  integer, allocatable :: nc(:)
  integer :: request = nf_req_null
  ! Of all requests at once the library asks for no list.
  integer :: requests(1) = nf_req_null, states(1) = nf_noerr

  ! All data, as each type.
  integer(int8), pointer, contiguous :: bytes(:)
  integer(int16), pointer, contiguous :: shorts(:)
  integer, pointer, contiguous :: ints(:)
  integer(int64), pointer, contiguous :: longs(:)
  real, pointer, contiguous :: reals(:)
  double precision, pointer, contiguous :: doubles(:)

  ! Numbers of variables in the file that was used last.
  integer, allocatable :: known_file(:), known_variable(:)

contains

  subroutine open_library()
    allocate (nc(0:handles - 1), known_file(0:object_count - 1), known_variable(0:object_count - 1))
    nc = -1
    known_file = -1
    known_variable = 0
    call c_f_pointer(buffer, bytes, [text_bytes])
    call c_f_pointer(buffer, shorts, [text_bytes / 2])
    call c_f_pointer(buffer, ints, [text_bytes / 4])
    call c_f_pointer(buffer, longs, [text_bytes / 8])
    call c_f_pointer(buffer, reals, [text_bytes / 4])
    call c_f_pointer(buffer, doubles, [text_bytes / 8])
  end subroutine open_library

  subroutine close_library()
  end subroutine close_library

  ! The call succeeds. Values that do not fit into a type are no failure: the data is not that of the traced program.
  subroutine good(what, status)
    character(len=*), intent(in) :: what
    integer, intent(in) :: status

    if (status /= nf_noerr .and. status /= nf_erange) call fail(what // ": " // trim(nfmpi_strerror(status)))
  end subroutine good

  ! The variable, or what an attribute is of.
  function variable(file, object) result(number)
    integer, intent(in) :: file, object
    integer :: number

    number = nf_global
    if (objects(object)%is_attribute .and. len(objects(object)%path) == 0) return
    if (known_file(object) /= file) then
      known_file(object) = file
      call good("inq_varid", nfmpi_inq_varid(file, objects(object)%path(2:), known_variable(object)))
    end if
    number = known_variable(object)
  end function variable

  subroutine forget(file)
    integer, intent(in) :: file

    where (known_file == file) known_file = -1
  end subroutine forget

  function type_of(object) result(number)
    integer, intent(in) :: object
    integer :: number

    select case (objects(object)%bytes)
    case (1)
      number = nf_byte
    case (2)
      number = nf_short
    case (4)
      number = nf_float
    case default
      number = nf_double
    end select
    if (objects(object)%text) number = nf_char
  end function type_of

  ! Defines a variable, and those of its dimensions that there are not: the trace has their lengths, not their names.
  function define(file, object) result(status)
    integer, intent(in) :: file, object
    integer :: status
    integer :: dims(size(objects(object)%dims)), d, made
    character(len=24) :: name

    do d = size(dims), 1, -1
      associate (length => objects(object)%dims(d))
        name = "dim_" // in_digits(length)
        if (nfmpi_inq_dimid(file, trim(name), dims(d)) /= nf_noerr) then
          call good("def_dim", nfmpi_def_dim(file, trim(name), int(length, mpi_offset_kind), dims(d)))
        end if
      end associate
    end do
    status = nfmpi_def_var(file, objects(object)%path(2:), type_of(object), size(dims), dims, made)
    if (no_fill /= 0 .and. status == nf_noerr) status = nf90mpi_def_var_fill(file, made, 1, 0)
  end function define

  ! Strides of a block, and how far its elements are from each other in memory.
  pure function ones(counts)
    integer(mpi_offset_kind), intent(in) :: counts(:)
    integer(mpi_offset_kind) :: ones(size(counts))

    ones = 1
  end function ones

  pure function map_of(counts) result(map)
    integer(mpi_offset_kind), intent(in) :: counts(:)
    integer(mpi_offset_kind) :: map(size(counts))
    integer :: d

    do d = 1, size(counts)
      map(d) = product(counts(:d - 1))
    end do
  end function map_of

  ! Files that were there before have all variables of the table.
  subroutine make_found(file)
    integer, intent(in) :: file
    integer :: new, at

    call good("create", nfmpi_create(mpi_comm_self, path(file), nf_64bit_data, mpi_info_null, new))
    do at = 0, object_count - 1
      if (objects(at)%file /= file .or. objects(at)%is_attribute .or. objects(at)%is_group) cycle
      call good("def_var", define(new, at))
    end do
    call good("enddef", nfmpi_enddef(new))
    call good("close", nfmpi_close(new))
  end subroutine make_found
end module replay_library
