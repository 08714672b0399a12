// Go's standard library: `files DIR LINES`. Four goroutines write a file each through a buffer; one is read back.
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func write(path string, lines int) {
	file, err := os.Create(path)
	check(err)
	out := bufio.NewWriterSize(file, 1000)
	for i := 0; i < lines; i++ {
		fmt.Fprintf(out, "line %06d\n", i)
	}
	check(out.Flush())
	check(file.Close())
}

func main() {
	dir := os.Args[1]
	lines, err := strconv.Atoi(os.Args[2])
	check(err)
	var all sync.WaitGroup
	for k := 0; k < 4; k++ {
		path := filepath.Join(dir, fmt.Sprint(k))
		all.Add(1)
		go func() {
			defer all.Done()
			write(path, lines)
		}()
	}
	all.Wait()
	data, err := os.ReadFile(filepath.Join(dir, "0"))
	check(err)
	if len(data) != 12*lines {
		panic(len(data))
	}
	_, err = os.Open(filepath.Join(dir, "missing"))
	if err == nil {
		panic("missing")
	}
}
