// SPDX-License-Identifier: Apache-2.0

// Goroutines that sysmon preempts by SIGURG, Go's own CPU profile by SIGPROF, signals, children, a
// nil pointer, and at the end whatever signal comes that nobody sent.
package main

import "C" // or it is linked statically

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
)

func spin(n int) int {
	x := 1
	for i := 0; i < n; i++ {
		x = x*1103515245 + 12345
	}
	return x
}

func fault() (caught bool) {
	defer func() { caught = recover() != nil }()
	var nothing *int
	*nothing = 1
	return false
}

func main() {
	var profile bytes.Buffer
	pprof.StartCPUProfile(&profile)
	var all sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			sums[i] = spin(60000000)
			runtime.GC()
		}(i)
	}
	asked := make(chan os.Signal, 10)
	signal.Notify(asked, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-asked)
	all.Wait()
	pprof.StopCPUProfile()
	fmt.Println(sums[0] == sums[7], profile.Len() > 500, fault())
	out, err := exec.Command("sh", "-c", "echo child; exit 3").Output()
	fmt.Printf("%q %v\n", out, err)
	any := make(chan os.Signal, 1000)
	signal.Notify(any)
	spin(60000000)
	for len(any) > 0 {
		if s := <-any; s != syscall.SIGURG && s != syscall.SIGCHLD {
			fmt.Println("nobody sent", s)
		}
	}
	os.Exit(7)
}
