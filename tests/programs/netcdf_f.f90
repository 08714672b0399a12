! A Fortran program of NetCDF: `netcdf_f FILE` writes a file, reads it back, and prints the bytes of each variable.
program netcdf_f
   use netcdf
   use, intrinsic :: iso_fortran_env, only: real32, real64, int32
   implicit none
   integer, parameter :: nx = 12, ny = 6, steps = 4
   character(len=1024) :: path
   integer :: file, dims(3), field, level, name, step, found
   real(real64) :: values(nx, ny), back(nx, ny)
   real(real32) :: heights(ny), some(3)
   character(len=8) :: text
   integer(int32) :: scale(2)

   call get_command_argument(1, path)
   call ok(nf90_create(trim(path), nf90_netcdf4, file))
   call ok(nf90_def_dim(file, "x", nx, dims(1)))
   call ok(nf90_def_dim(file, "y", ny, dims(2)))
   call ok(nf90_def_dim(file, "time", nf90_unlimited, dims(3)))
   call ok(nf90_def_var(file, "field", nf90_double, dims, field))
   call ok(nf90_def_var(file, "level", nf90_float, dims(2), level))
   call ok(nf90_def_var(file, "name", nf90_char, dims(2), name))
   call ok(nf90_put_att(file, field, "scale", [1, 2]))
   call ok(nf90_enddef(file))
   do step = 1, steps
      values = step
      call ok(nf90_put_var(file, field, values, start=[1, 1, step], count=[nx, ny, 1]))
   end do
   heights = 1
   call ok(nf90_put_var(file, level, heights))
   call ok(nf90_put_var(file, name, "abcdef"))
   call ok(nf90_close(file))

   call ok(nf90_open(trim(path), nf90_nowrite, file))
   call ok(nf90_inq_varid(file, "field", found))
   call ok(nf90_get_var(file, found, back, start=[1, 1, 3], count=[nx, ny, 1]))
   if (any(abs(back - 3) > 0)) error stop 1
   call ok(nf90_get_att(file, found, "scale", scale))
   if (scale(2) /= 2) error stop 1
   call ok(nf90_inq_varid(file, "level", found))
   call ok(nf90_get_var(file, found, some, start=[1], count=[3], stride=[2]))
   call ok(nf90_inq_varid(file, "name", found))
   call ok(nf90_get_var(file, found, text(1:6)))
   if (text(1:6) /= "abcdef") error stop 1
   call ok(nf90_close(file))
   write (*, '(a,i0,a,i0,a,i0,a,i0,a,i0,a,i0,a)') '{"written":{"/field":', steps * nx * ny * 8, ',"/level":', ny * 4, &
      ',"/name":', 6, '},"read":{"/field":', nx * ny * 8, ',"/level":', 3 * 4, ',"/name":', 6, '}}'

contains

   subroutine ok(status)
      integer, intent(in) :: status
      if (status == nf90_noerr) return
      write (*, *) trim(nf90_strerror(status))
      error stop 1
   end subroutine ok
end program netcdf_f
