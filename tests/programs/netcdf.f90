! NetCDF by its Fortran interface: `netcdf FILE`. A NetCDF-4 file with a variable that is written in ROUNDS parts and
! read in two.
program netcdf_f90
  use netcdf
  implicit none
  integer, parameter :: n = 1000, rounds = 5
  integer :: file, dim, var, i
  double precision :: values(n)
  character(len=4096) :: path

  call get_command_argument(1, path)
  call check(nf90_create(trim(path), ior(nf90_clobber, nf90_netcdf4), file))
  call check(nf90_def_dim(file, "x", n*rounds, dim))
  call check(nf90_def_var(file, "v", nf90_double, [dim], var))
  call check(nf90_enddef(file))
  do i = 1, rounds
     values = i
     call check(nf90_put_var(file, var, values, start=[(i - 1)*n + 1], count=[n]))
  end do
  do i = 1, 2
     call check(nf90_get_var(file, var, values, start=[(i - 1)*n + 1], count=[n]))
     if (any(values /= i)) stop 1
  end do
  call check(nf90_close(file))
contains
  subroutine check(status)
    integer, intent(in) :: status
    if (status /= nf90_noerr) then
       print *, trim(nf90_strerror(status))
       stop 1
    end if
  end subroutine check
end program netcdf_f90
