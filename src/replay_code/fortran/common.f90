! What every generated program has: its directory, its tables, checks of results, think time.
module replay_common
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int8, int16, int64
  use mpi
  implicit none

  type file_entry
    character(len=:), allocatable :: name
    ! Bytes that it had before the program; -1: the program makes it.
    integer(int64) :: found = -1
  end type file_entry

  type hint_entry
    integer :: set = 0
    character(len=:), allocatable :: key, text
  end type hint_entry

  ! Ranks of a communicator: first, last and distance.
  type part_entry
    integer :: communicator = -1
    integer :: ranks(3) = [0, 0, 1]
  end type part_entry

  ! A dataset, variable or group, or an attribute of one. The first dimension is the one that changes fastest.
  type object_entry
    integer :: file = -1
    character(len=:), allocatable :: path, attribute
    logical :: is_attribute = .false., is_group = .false.
    integer :: bytes = 0
    integer(int64), allocatable :: dims(:), chunk(:)
    logical :: shuffle = .false., checksum = .false., text = .false.
    integer :: deflate = -1
  end type object_entry

  type, bind(c) :: time_span
    integer(c_long) :: seconds, nanoseconds
  end type time_span

  interface
    function c_mkdir(name, mode) bind(c, name="mkdir") result(status)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: mode
      integer(c_int) :: status
    end function c_mkdir

    function c_unlink(name) bind(c, name="unlink") result(status)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: status
    end function c_unlink

    function c_nanosleep(asked, left) bind(c, name="nanosleep") result(status)
      import :: c_int, c_ptr, time_span
      type(time_span), intent(in) :: asked
      type(c_ptr), value :: left
      integer(c_int) :: status
    end function c_nanosleep

    function c_errno() bind(c, name="__errno_location") result(place)
      import :: c_ptr
      type(c_ptr) :: place
    end function c_errno

    function c_strerror(number) bind(c, name="strerror") result(text)
      import :: c_int, c_ptr
      integer(c_int), value :: number
      type(c_ptr) :: text
    end function c_strerror

    function c_strlen(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function c_strlen
  end interface

  integer(int64) :: rank = 0    ! in the trace, counted from 0
  integer(int64) :: member = 0  ! among the ranks that make the same calls: where its values are in a table
  integer :: processes = 0      ! the program is made for so many
  integer :: handles = 0
  logical :: prepares = .false.
  character(len=:), allocatable :: directory

  ! All data: as text, and where it is.
  character(len=:), allocatable, target :: text
  integer(int64) :: text_bytes = 0
  type(c_ptr) :: buffer = c_null_ptr

  type(file_entry), allocatable :: files(:)
  type(hint_entry), allocatable :: hint_list(:)
  type(part_entry), allocatable :: parts(:)
  type(object_entry), allocatable :: objects(:)
  integer :: file_count = 0, hint_count = 0, part_count = 0, object_count = 0
  integer, allocatable :: communicators(:), infos(:)

  ! What is otherwise than in the trace; 0: nothing.
  integer(int64) :: collective_metadata = 0, chunk_cache = 0, no_fill = 0

contains

  ! Ends all processes.
  subroutine fail(message)
    character(len=*), intent(in) :: message
    integer :: status

    write (error_unit, "(a,i0,2a)") "rank ", rank, ": ", message
    flush (error_unit)
    call mpi_abort(mpi_comm_world, 1, status)
  end subroutine fail

  subroutine mpi_good(what, status)
    character(len=*), intent(in) :: what
    integer, intent(in) :: status
    character(len=mpi_max_error_string) :: message
    integer :: length, ignored

    if (status == mpi_success) return
    call mpi_error_string(status, message, length, ignored)
    call fail(what // ": " // message(:length))
  end subroutine mpi_good

  function in_digits(number)
    integer(int64), intent(in) :: number
    character(len=20) :: in_digits

    write (in_digits, "(i0)") number
  end function in_digits

  function path(file) result(name)
    integer, intent(in) :: file
    character(len=:), allocatable :: name

    name = directory // "/" // files(file)%name
  end function path

  ! Starts MPI, and reads the arguments.
  subroutine begin()
    character(len=3) :: option
    integer :: number, count, length, status

    call mpi_init(status)
    call mpi_comm_rank(mpi_comm_world, number, status)
    rank = number
    count = command_argument_count()
    option = ""
    if (count == 2) call get_command_argument(1, option)
    prepares = option == "-p"
    if (count /= merge(2, 1, prepares)) then
      call fail("usage: replay [-p] DIRECTORY (-p: make the files that the calls need, and remove those of an " // &
           "earlier run)")
    end if
    call get_command_argument(count, length=length)
    allocate (character(len=length) :: directory)
    call get_command_argument(count, directory)
    ! Libraries leave out blanks at the ends of names.
    if (index(directory, "/") /= 1) directory = "./" // directory
  end subroutine begin

  ! Makes room for the tables, and for all data.
  subroutine make_tables(ranks, handles, bytes, files, hints, sets, parts, communicators, objects)
    integer, intent(in) :: ranks, handles, files, hints, sets, parts, communicators, objects
    integer(int64), intent(in) :: bytes

    processes = ranks
    call make_buffer(bytes)
    call make_lists(handles, files, hints, sets, parts, communicators, objects)
  end subroutine make_tables

  subroutine make_buffer(bytes)
    integer(int64), intent(in) :: bytes
    integer(int8), pointer :: zeros(:)
    integer :: status

    allocate (character(len=bytes) :: text, stat=status)
    if (status /= 0) call fail("no memory for " // trim(in_digits(bytes)) // " bytes of data")
    text_bytes = bytes
    buffer = c_loc(text(1:1))
    call c_f_pointer(buffer, zeros, [bytes])
    zeros = 0_int8
  end subroutine make_buffer

  subroutine make_lists(handle_count, file_room, hint_room, sets, part_room, communicator_room, object_room)
    integer, intent(in) :: handle_count, file_room, hint_room, sets, part_room, communicator_room, object_room

    handles = handle_count
    allocate (files(0:file_room - 1), hint_list(hint_room), parts(part_room), objects(0:object_room - 1))
    allocate (communicators(0:communicator_room - 1), infos(0:sets))
    communicators = mpi_comm_null
    infos = mpi_info_null
  end subroutine make_lists

  subroutine add_file(name, found)
    character(len=*), intent(in) :: name
    integer(int64), intent(in), optional :: found

    files(file_count)%name = name
    if (present(found)) files(file_count)%found = found
    file_count = file_count + 1
  end subroutine add_file

  subroutine add_hint(set, key, text)
    integer, intent(in) :: set
    character(len=*), intent(in) :: key, text

    hint_count = hint_count + 1
    hint_list(hint_count)%set = set
    hint_list(hint_count)%key = key
    hint_list(hint_count)%text = text
  end subroutine add_hint

  subroutine add_part(communicator, ranks)
    integer, intent(in) :: communicator, ranks(3)

    part_count = part_count + 1
    parts(part_count)%communicator = communicator
    parts(part_count)%ranks = ranks
  end subroutine add_part

  subroutine add_object(file, path, bytes, dims, chunk, attribute, group, shuffle, deflate, checksum, text)
    integer, intent(in) :: file, bytes
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: dims(:)
    integer(int64), intent(in), optional :: chunk(:)
    character(len=*), intent(in), optional :: attribute
    logical, intent(in), optional :: group, shuffle, checksum, text
    integer, intent(in), optional :: deflate

    associate (new => objects(object_count))
      new%file = file
      new%path = path
      new%bytes = bytes
      new%dims = dims
      if (present(chunk)) new%chunk = chunk
      new%is_attribute = present(attribute)
      if (present(attribute)) new%attribute = attribute
      if (present(group)) new%is_group = group
      if (present(shuffle)) new%shuffle = shuffle
      if (present(deflate)) new%deflate = deflate
      if (present(checksum)) new%checksum = checksum
      if (present(text)) new%text = text
    end associate
    object_count = object_count + 1
  end subroutine add_object

  ! 0: all ranks, 1: this process alone, others: some of the ranks.
  function communicator(number) result(found)
    integer, intent(in) :: number
    integer :: found
    integer :: world, both, ranks, group, at, status

    found = mpi_comm_world
    if (number == 1) found = mpi_comm_self
    if (number < 2) return
    found = communicators(number)
    if (found /= mpi_comm_null) return
    call mpi_comm_group(mpi_comm_world, world, status)
    call mpi_good("MPI_Comm_group", status)
    group = mpi_group_empty
    do at = 1, part_count
      if (parts(at)%communicator /= number) cycle
      call mpi_group_range_incl(world, 1, reshape(parts(at)%ranks, [3, 1]), ranks, status)
      call mpi_good("MPI_Group_range_incl", status)
      call mpi_group_union(group, ranks, both, status)
      call mpi_good("MPI_Group_union", status)
      group = both
    end do
    call mpi_comm_create_group(mpi_comm_world, group, number, found, status)
    call mpi_good("MPI_Comm_create_group", status)
    communicators(number) = found
  end function communicator

  ! Hints, from the table of their sets; 0 are none.
  function hints(set) result(info)
    integer, intent(in) :: set
    integer :: info
    integer :: at, status

    info = infos(set)
    if (set == 0 .or. info /= mpi_info_null) return
    call mpi_info_create(info, status)
    call mpi_good("MPI_Info_create", status)
    do at = 1, hint_count
      if (hint_list(at)%set /= set) cycle
      call mpi_info_set(info, hint_list(at)%key, hint_list(at)%text, status)
      call mpi_good("MPI_Info_set", status)
    end do
    infos(set) = info
  end function hints

  ! What the program did between two calls: it computes, or waits.
  subroutine think(ns)
    integer(int64), intent(in) :: ns
    integer(int64), parameter :: second = 1000000000_int64
    integer(int64) :: start, now, rate, passed
    integer(c_int) :: ignored

    call system_clock(start, rate)
    do
      call system_clock(now)
      passed = (now - start) / rate * second + mod(now - start, rate) * second / rate
      if (passed >= ns) exit
      if (ns - passed >= 100000) then
        ignored = c_nanosleep(time_span((ns - passed) / second, mod(ns - passed, second)), c_null_ptr)
      end if
    end do
  end subroutine think

  ! The number of the last failure of a function of C, and that in words.
  function errno()
    integer(c_int) :: errno
    integer(c_int), pointer :: place

    call c_f_pointer(c_errno(), place)
    errno = place
  end function errno

  function reason(number) result(words)
    integer(c_int), intent(in) :: number
    character(len=:), allocatable :: words
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: place
    integer :: at

    place = c_strerror(number)
    call c_f_pointer(place, letters, [c_strlen(place)])
    words = ""
    do at = 1, size(letters)
      words = words // letters(at)
    end do
  end function reason

  ! Removes what an earlier run left, and makes the directories and the files that the program found.
  subroutine prepare(make_found)
    interface
      subroutine make_found(file)
        integer, intent(in) :: file
      end subroutine make_found
    end interface
    integer(c_int), parameter :: no_entry = 2, is_directory = 21
    character(len=:), allocatable :: name
    integer(c_int) :: why
    integer :: file

    do file = 0, file_count - 1
      name = path(file)
      call make_directories(name)
      if (c_unlink(name // c_null_char) == 0) cycle
      why = errno()
      ! Others may lie in it.
      if (why /= no_entry .and. why /= is_directory) call fail("unlink " // name // ": " // reason(why))
    end do
    do file = 0, file_count - 1
      if (files(file)%found >= 0) call make_found(file)
    end do
  end subroutine prepare

  ! Those of a name, below the directory of the program.
  subroutine make_directories(name)
    character(len=*), intent(in) :: name
    integer(c_int), parameter :: mode = 493, exists = 17  ! 0755
    integer(c_int) :: why
    integer :: at

    do at = len(directory) + 2, len(name)
      if (name(at:at) /= "/") cycle
      if (c_mkdir(name(:at - 1) // c_null_char, mode) == 0) cycle
      why = errno()
      if (why /= exists) call fail("mkdir " // name(:at - 1) // ": " // reason(why))
    end do
  end subroutine make_directories

  ! Waits for all processes, of which there must be as many as in the trace.
  subroutine ready()
    integer :: started, status
    character(len=20) :: own

    call mpi_comm_size(mpi_comm_world, started, status)
    own = in_digits(int(processes, int64))
    if (started /= processes) then
      call fail("started with " // trim(in_digits(int(started, int64))) // " processes and made for " // trim(own) // &
           ": mpirun -n " // trim(own))
    end if
    call mpi_barrier(mpi_comm_world, status)
  end subroutine ready

  subroutine finish()
    integer :: status

    call mpi_finalize(status)
  end subroutine finish
end module replay_common
