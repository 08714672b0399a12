! MPI-IO from Fortran, by each of its three bindings: `mpirun -np 2 mpiio_f DIR`. Every call is made once on each rank;
! the file of a binding is named after it, and its blocks are of different sizes.

subroutine by_mpif(dir)
  implicit none
  include 'mpif.h'
  character(len=*), intent(in) :: dir
  integer :: fh, ierr, info, status(MPI_STATUS_SIZE), request, block(100), rank
  integer(kind=MPI_OFFSET_KIND) :: at
  block = 1
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'cb_nodes', '1', ierr)
  call MPI_File_open(MPI_COMM_WORLD, dir // '/mpif.dat', MPI_MODE_CREATE + MPI_MODE_RDWR, info, fh, ierr)
  at = rank * 400
  call MPI_File_write_at_all(fh, at, block, 100, MPI_INTEGER, status, ierr)
  call MPI_File_iread_at(fh, at, block, 100, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, status, ierr)
  call MPI_File_close(fh, ierr)
  call MPI_Info_free(info, ierr)
end subroutine

subroutine by_module(dir)
  use mpi
  implicit none
  character(len=*), intent(in) :: dir
  integer :: fh, ierr, info, status(MPI_STATUS_SIZE), request, rank
  double precision :: block(200)
  integer(kind=MPI_OFFSET_KIND) :: at
  block = 2
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'cb_nodes', '2', ierr)
  call MPI_File_open(MPI_COMM_WORLD, dir // '/module.dat', MPI_MODE_CREATE + MPI_MODE_RDWR, info, fh, ierr)
  at = rank * 1600
  call MPI_File_write_at_all(fh, at, block, 200, MPI_DOUBLE_PRECISION, status, ierr)
  call MPI_File_iread_at(fh, at, block, 200, MPI_DOUBLE_PRECISION, request, ierr)
  call MPI_Wait(request, status, ierr)
  call MPI_File_close(fh, ierr)
  call MPI_Info_free(info, ierr)
end subroutine

subroutine by_f08(dir)
  use mpi_f08
  implicit none
  character(len=*), intent(in) :: dir
  type(MPI_File) :: fh
  type(MPI_Info) :: info
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  integer :: rank
  integer, asynchronous :: block(300)
  integer(kind=MPI_OFFSET_KIND) :: at
  block = 3
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'cb_nodes', '3')
  call MPI_File_open(MPI_COMM_WORLD, dir // '/f08.dat', MPI_MODE_CREATE + MPI_MODE_RDWR, info, fh)
  at = rank * 1200
  call MPI_File_write_at_all(fh, at, block, 300, MPI_INTEGER, status)
  call MPI_File_iread_at(fh, at, block, 300, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  call MPI_File_close(fh)
  call MPI_Info_free(info)
end subroutine

program mpiio_f
  use mpi
  implicit none
  character(len=4096) :: dir
  integer :: ierr
  call get_command_argument(1, dir)
  call MPI_Init(ierr)
  call by_mpif(trim(dir))
  call by_module(trim(dir))
  call by_f08(trim(dir))
  call MPI_Finalize(ierr)
end program
