! MPI-IO by `mpi_f08`, HDF5 by its Fortran interface, and Fortran's own files: `parallel DIR`.
!
! Each rank writes ROUNDS blocks of N doubles to DIR/mpi.dat with MPI_File_write_at and as many with
! MPI_File_write_at_all, reads its first block back, writes its rows of the dataset "field" of DIR/field.h5 ROUNDS times
! with H5Dwrite and reads them once, and prints LINES lines to DIR/log.RANK.
program parallel
  use mpi_f08
  use hdf5
  use iso_fortran_env, only: real64
  implicit none
  integer, parameter :: n = 1000, rounds = 4, lines = 200
  type(mpi_file) :: file
  type(mpi_info) :: info
  integer(hid_t) :: access, h5, space, memory, field
  integer(hsize_t) :: whole(2), part(2), from(2)
  integer(mpi_offset_kind) :: at
  integer :: rank, ranks, i, error
  real(real64) :: block(n)
  character(len=4096) :: dir
  character(len=16) :: number

  call get_command_argument(1, dir)
  call mpi_init()
  call mpi_comm_rank(mpi_comm_world, rank)
  call mpi_comm_size(mpi_comm_world, ranks)
  block = rank

  info = mpi_info_null
  call mpi_file_open(mpi_comm_world, trim(dir)//"/mpi.dat", ior(mpi_mode_create, mpi_mode_rdwr), info, file)
  do i = 0, 2*rounds - 1
     at = int(i*ranks + rank, mpi_offset_kind)*n*8
     if (i < rounds) then
        call mpi_file_write_at(file, at, block, n, mpi_real8, mpi_status_ignore)
     else
        call mpi_file_write_at_all(file, at, block, n, mpi_real8, mpi_status_ignore)
     end if
  end do
  call mpi_file_read_at(file, int(rank, mpi_offset_kind)*n*8, block, n, mpi_real8, mpi_status_ignore)
  call mpi_file_close(file)
  if (any(block /= rank)) call mpi_abort(mpi_comm_world, 1)

  call h5open_f(error)
  call h5pcreate_f(h5p_file_access_f, access, error)
  call h5pset_fapl_mpio_f(access, mpi_comm_world%mpi_val, info%mpi_val, error)
  call h5fcreate_f(trim(dir)//"/field.h5", h5f_acc_trunc_f, h5, error, access_prp=access)
  whole = [int(n, hsize_t), int(ranks, hsize_t)]
  part = [int(n, hsize_t), 1_hsize_t]
  from = [0_hsize_t, int(rank, hsize_t)]
  call h5screate_simple_f(2, whole, space, error)
  call h5screate_simple_f(2, part, memory, error)
  call h5dcreate_f(h5, "field", h5t_native_double, space, field, error)
  call h5sselect_hyperslab_f(space, h5s_select_set_f, from, part, error)
  do i = 1, rounds
     call h5dwrite_f(field, h5t_native_double, block, part, error, memory, space)
     if (error /= 0) call mpi_abort(mpi_comm_world, 1)
  end do
  call h5dread_f(field, h5t_native_double, block, part, error, memory, space)
  if (error /= 0 .or. any(block /= rank)) call mpi_abort(mpi_comm_world, 1)
  call h5dclose_f(field, error)
  call h5sclose_f(memory, error)
  call h5sclose_f(space, error)
  call h5fclose_f(h5, error)
  call h5pclose_f(access, error)
  call h5close_f(error)

  write (number, "(i0)") rank
  open (unit=10, file=trim(dir)//"/log."//trim(number), status="replace", action="write")
  do i = 1, lines
     write (10, "(a,i6)") "line ", i
  end do
  close (10)
  call mpi_finalize()
end program parallel
