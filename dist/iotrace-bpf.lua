-- Module file (Lmod; `module load iotrace-bpf`): /opt/iotrace-bpf has what the tar file has.
local root = "/opt/iotrace-bpf"
help([[Traces the I/O of programs through every layer: iotrace-bpf -- COMMAND, iotrace-bpf report DIR.]])
whatis("Name: iotrace-bpf")
whatis("Description: eBPF tracer of I/O, from HDF5, NetCDF and MPI-IO down to the device")
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
