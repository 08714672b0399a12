// Go that calls C: `cgo_stdio DIR LINES`. Four goroutines write a file each with the C library's stdio, and make their
// own stacks grow, and so move, in between.
package main

// #include <stdio.h>
// #include <stdlib.h>
// static FILE *open_file(const char *path) { return fopen(path, "w"); }
// static int print_line(FILE *file, int i) { return fprintf(file, "line %06d\n", i); }
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unsafe"
)

func deep(n int) int {
	var room [64]int
	if n == 0 {
		return 0
	}
	room[n%64] = n
	return deep(n-1) + room[n%64]
}

func write(path string, lines int) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	file := C.open_file(name)
	if file == nil {
		panic(path)
	}
	for i := 0; i < lines; i++ {
		if C.print_line(file, C.int(i)) != 12 {
			panic(i)
		}
		deep(i)
	}
	if C.fclose(file) != 0 {
		panic(path)
	}
}

func main() {
	lines, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for k := 0; k < 4; k++ {
		path := filepath.Join(os.Args[1], fmt.Sprint(k))
		all.Add(1)
		go func() {
			defer all.Done()
			write(path, lines)
		}()
	}
	all.Wait()
}
