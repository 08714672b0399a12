
! HDF5. Its interface for Fortran has dimensions in the opposite order, so that files are as those of programs in C.
module replay_library
  use hdf5
  use replay_common
  implicit none

  integer(hid_t), allocatable :: id(:)
  integer :: error = 0

  ! What was made: 0, where nothing was.
  integer(hid_t), allocatable :: accesses(:, :), spaces(:)
  integer(hid_t) :: opaque = 0, collective = 0, memory = 0
  integer(hsize_t) :: memory_elements = -1

contains

  subroutine open_library()
    call h5open_f(error)
    call good("H5open", error)
    allocate (id(0:handles - 1), spaces(0:object_count - 1))
    allocate (accesses(-1:ubound(communicators, 1), 0:ubound(infos, 1)))
    id = -1
    spaces = 0
    accesses = 0
  end subroutine open_library

  subroutine close_library()
    call h5close_f(error)
    call good("H5close", error)
  end subroutine close_library

  subroutine good(what, status)
    character(len=*), intent(in) :: what
    integer, intent(in) :: status

    if (status < 0) call fail(what // " failed")
  end subroutine good

  ! How a file is opened: -1 by this process alone, else by the ranks of a communicator.
  function access_by(number, set) result(list)
    integer, intent(in) :: number, set
    integer(hid_t) :: list
    integer :: status

    list = accesses(number, set)
    if (list /= 0) return
    call h5pcreate_f(h5p_file_access_f, list, status)
    call good("H5Pcreate", status)
    if (number >= 0) then
      call h5pset_fapl_mpio_f(list, communicator(number), hints(set), status)
      call good("H5Pset_fapl_mpio", status)
      if (collective_metadata /= 0) then
        call h5pset_all_coll_metadata_ops_f(list, .true., status)
        call good("H5Pset_all_coll_metadata_ops", status)
        call h5pset_coll_metadata_write_f(list, .true., status)
        call good("H5Pset_coll_metadata_write", status)
      end if
    end if
    if (chunk_cache /= 0) then
      call h5pset_cache_f(list, 0, 12421_size_t, int(chunk_cache, size_t), 0.75, status)
      call good("H5Pset_cache", status)
    end if
    accesses(number, set) = list
  end function access_by

  ! The trace has the size of elements, and not their type.
  function type_of(bytes) result(found)
    integer, intent(in) :: bytes
    integer(hid_t) :: found
    integer :: status

    select case (bytes)
    case (1)
      found = h5kind_to_type(int8, h5_integer_kind)
    case (2)
      found = h5kind_to_type(int16, h5_integer_kind)
    case (4)
      found = h5t_native_real
    case (8)
      found = h5t_native_double
    case default
      if (opaque /= 0) then
        call h5tclose_f(opaque, status)
        call good("H5Tclose", status)
      end if
      call h5tcreate_f(h5t_opaque_f, int(bytes, size_t), opaque, status)
      call good("H5Tcreate", status)
      found = opaque
    end select
  end function type_of

  function space_of(object) result(space)
    integer, intent(in) :: object
    integer(hid_t) :: space
    integer :: status

    associate (dims => objects(object)%dims)
      if (size(dims) == 0) then
        call h5screate_f(h5s_scalar_f, space, status)
        call good("H5Screate", status)
      else
        call h5screate_simple_f(size(dims), int(dims, hsize_t), space, status)
        call good("H5Screate_simple", status)
      end if
    end associate
  end function space_of

  ! How a dataset is stored.
  function storage_of(object) result(list)
    integer, intent(in) :: object
    integer(hid_t) :: list
    integer :: status

    call h5pcreate_f(h5p_dataset_create_f, list, status)
    call good("H5Pcreate", status)
    if (no_fill /= 0) then
      call h5pset_fill_time_f(list, h5d_fill_time_never_f, status)
      call good("H5Pset_fill_time", status)
    end if
    if (.not. allocated(objects(object)%chunk)) return
    associate (chunk => objects(object)%chunk)
      call h5pset_chunk_f(list, size(chunk), int(chunk, hsize_t), status)
      call good("H5Pset_chunk", status)
    end associate
    if (objects(object)%shuffle) then
      call h5pset_shuffle_f(list, status)
      call good("H5Pset_shuffle", status)
    end if
    if (objects(object)%deflate >= 0) then
      call h5pset_deflate_f(list, objects(object)%deflate, status)
      call good("H5Pset_deflate", status)
    end if
    if (objects(object)%checksum) then
      call h5pset_fletcher32_f(list, status)
      call good("H5Pset_fletcher32", status)
    end if
  end function storage_of

  ! What an attribute is of: its own path is empty in the group of all.
  function owner(object) result(name)
    integer, intent(in) :: object
    character(len=:), allocatable :: name

    name = objects(object)%path
    if (len(name) == 0) name = "/"
  end function owner

  ! Makes an object, with the groups around it; one of that name goes.
  subroutine create_object(what, file, object, made)
    character(len=*), intent(in) :: what
    integer(hid_t), intent(in) :: file
    integer, intent(in) :: object
    integer(hid_t), intent(out) :: made
    integer(hid_t) :: links, space, storage
    logical :: is_there
    integer :: status

    call h5pcreate_f(h5p_link_create_f, links, status)
    call good("H5Pcreate", status)
    call h5pset_create_inter_group_f(links, 1, status)
    call good("H5Pset_create_intermediate_group", status)
    associate (new => objects(object))
      if (.not. new%is_attribute) then
        call h5lexists_f(file, new%path, is_there, status)
        if (status >= 0 .and. is_there) then
          call h5ldelete_f(file, new%path, status)
          call good("H5Ldelete", status)
        end if
      end if
      if (new%is_group) then
        call h5gcreate_f(file, new%path, made, status, lcpl_id=links)
        call good(what, status)
      else
        space = space_of(object)
        storage = storage_of(object)
        if (new%is_attribute) then
          call h5acreate_by_name_f(file, owner(object), new%attribute, type_of(new%bytes), space, made, status)
        else
          call h5dcreate_f(file, new%path, type_of(new%bytes), space, made, status, dcpl_id=storage, lcpl_id=links)
        end if
        call good(what, status)
        call h5sclose_f(space, status)
        call good("H5Sclose", status)
        call h5pclose_f(storage, status)
        call good("H5Pclose", status)
      end if
    end associate
    call h5pclose_f(links, status)
    call good("H5Pclose", status)
  end subroutine create_object

  subroutine open_object(what, file, object, opened)
    character(len=*), intent(in) :: what
    integer(hid_t), intent(in) :: file
    integer, intent(in) :: object
    integer(hid_t), intent(out) :: opened
    integer :: status

    if (objects(object)%is_attribute) then
      call h5aopen_by_name_f(file, owner(object), objects(object)%attribute, opened, status)
    else
      call h5oopen_f(file, objects(object)%path, opened, status)
    end if
    call good(what, status)
  end subroutine open_object

  ! How data is passed: 1 by all ranks together.
  function by(number) result(list)
    integer, intent(in) :: number
    integer(hid_t) :: list
    integer :: status

    list = h5p_default_f
    if (number == 0) return
    if (collective == 0) then
      call h5pcreate_f(h5p_dataset_xfer_f, collective, status)
      call good("H5Pcreate", status)
      call h5pset_dxpl_mpio_f(collective, h5fd_mpio_collective_f, status)
      call good("H5Pset_dxpl_mpio", status)
    end if
    list = collective
  end function by

  ! As many elements in memory, one after the other.
  function memory_of(counts) result(space)
    integer(hsize_t), intent(in) :: counts(:)
    integer(hid_t) :: space
    integer(hsize_t) :: elements
    integer :: status

    elements = product(counts)
    if (memory == 0 .or. memory_elements /= elements) then
      if (memory /= 0) then
        call h5sclose_f(memory, status)
        call good("H5Sclose", status)
      end if
      memory_elements = elements
      call h5screate_simple_f(1, [max(elements, 1_hsize_t)], memory, status)
      call good("H5Screate_simple", status)
      if (elements == 0) then
        call h5sselect_none_f(memory, status)
        call good("H5Sselect_none", status)
      end if
    end if
    space = memory
  end function memory_of

  ! The block in the file.
  function selected(object, starts, counts) result(space)
    integer, intent(in) :: object
    integer(hsize_t), intent(in) :: starts(:), counts(:)
    integer(hid_t) :: space
    integer :: status

    if (spaces(object) == 0) spaces(object) = space_of(object)
    space = spaces(object)
    if (any(counts == 0)) then
      call h5sselect_none_f(space, status)
      call good("H5Sselect_none", status)
    else if (size(counts) > 0) then
      call h5sselect_hyperslab_f(space, h5s_select_set_f, starts, counts, status)
      call good("H5Sselect_hyperslab", status)
    end if
  end function selected

  ! Files that were there before have all objects of the table.
  subroutine make_found(file)
    integer, intent(in) :: file
    integer(hid_t) :: new, object
    integer :: at

    call h5fcreate_f(path(file), h5f_acc_trunc_f, new, error)
    call good("H5Fcreate", error)
    do at = 0, object_count - 1
      if (objects(at)%file /= file) cycle
      call create_object("create", new, at, object)
      if (objects(at)%is_attribute) then
        call h5aclose_f(object, error)
        call good("H5Aclose", error)
      else
        call h5oclose_f(object, error)
        call good("H5Oclose", error)
      end if
    end do
    call h5fclose_f(new, error)
    call good("H5Fclose", error)
  end subroutine make_found
end module replay_library
