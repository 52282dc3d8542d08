// SPDX-License-Identifier: Apache-2.0

// linear-porcupine HISTORY [-seconds N] [-html DIR]: judges a history (tests/linear/history.h) with
// Porcupine, key by key. It is a second judge, independent of linear-check.
//
// Output: lines `answered N`, `open N`, `keys N`, `violations N`, `unknown N`, and last
// `verdict ok|violation|unknown`. With -html it writes a page for each key with a violation: a time
// line with the longest part of the history that an order explains.
// Exit: 0 ok, 1 violation, 2 the history cannot be read, 3 unknown, which is no pass.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

type input struct {
	action string
	value  string // of set and push
}

type output struct {
	open   bool // there was no answer: any result is right
	result string
}

// The value of a key. It is comparable, because Porcupine caches states.
type state struct {
	exists bool
	number int64  // a register, a counter
	length int    // a list
	items  string // a list, as LRANGE shows it
}

func next(s state, in input) (state, string) {
	switch in.action {
	case "set":
		n, _ := strconv.ParseInt(in.value, 10, 64)
		return state{exists: true, number: n}, "ok"
	case "incr":
		s = state{exists: true, number: s.number + 1}
		return s, strconv.FormatInt(s.number, 10)
	case "push":
		if s.length > 0 {
			s.items += ","
		}
		s = state{exists: true, length: s.length + 1, items: s.items + in.value}
		return s, strconv.Itoa(s.length)
	case "range":
		return s, "[" + s.items + "]"
	default: // get
		if !s.exists {
			return s, "nil"
		}
		return s, strconv.FormatInt(s.number, 10)
	}
}

var server = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(s, in, out interface{}) (bool, interface{}) {
		after, result := next(s.(state), in.(input))
		heard := out.(output)
		return heard.open || heard.result == result, after
	},
	DescribeOperation: func(in, out interface{}) string {
		heard := out.(output)
		if heard.open {
			return fmt.Sprintf("%s %s: no answer", in.(input).action, in.(input).value)
		}
		return fmt.Sprintf("%s %s: %s", in.(input).action, in.(input).value, heard.result)
	},
}

// CLIENT KEY ACTION ARGUMENT CALLED RETURNED RESULT
func parse(line string) (key string, op porcupine.Operation, err error) {
	w := strings.Split(line, " ")
	if len(w) != 7 {
		return "", op, fmt.Errorf("%d words instead of 7", len(w))
	}
	switch w[2] {
	case "set", "get", "incr", "push", "range":
	default:
		return "", op, fmt.Errorf("unknown action %q", w[2])
	}
	client, err := strconv.Atoi(w[0])
	if err != nil {
		return "", op, err
	}
	called, err := strconv.ParseInt(w[4], 10, 64)
	if err != nil {
		return "", op, err
	}
	returned := int64(math.MaxInt64)
	if w[5] != "-" {
		if returned, err = strconv.ParseInt(w[5], 10, 64); err != nil {
			return "", op, err
		}
	}
	op = porcupine.Operation{ClientId: client, Input: input{w[2], w[3]}, Call: called,
		Output: output{w[5] == "-", w[6]}, Return: returned}
	return w[1], op, nil
}

func read(path string) (map[string][]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	keys := map[string][]porcupine.Operation{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for number := 1; lines.Scan(); number++ {
		key, op, err := parse(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		keys[key] = append(keys[key], op)
	}
	return keys, lines.Err()
}

// Porcupine shows the clients of one key as rows 0, 1, ..., in the order of their first call.
func renumber(operations []porcupine.Operation) {
	sort.SliceStable(operations, func(i, j int) bool {
		return operations[i].Call < operations[j].Call
	})
	rows := map[int]int{}
	for i := range operations {
		row, known := rows[operations[i].ClientId]
		if !known {
			row = len(rows)
			rows[operations[i].ClientId] = row
		}
		operations[i].ClientId = row
	}
}

// The values in an answer: one value, or the items of a list.
func seen(in input, out output) []string {
	if in.action != "get" && in.action != "range" {
		return nil
	}
	return strings.Split(strings.Trim(out.result, "[]"), ",")
}

// Returns the history with less freedom for open operations, so that the search ends soon. It
// leaves out open operations that need not have happened: reads, writes of values that no answer
// contains, and the later increments beyond the count in the last answer. An order of the rest is
// an order of the whole in which these never happened. A write of a value that an answer contains
// ends when that answer arrives.
func withoutIdle(operations []porcupine.Operation) []porcupine.Operation {
	firstSeen := map[string]int64{}
	last, counted := porcupine.Operation{}, int64(0)
	for _, op := range operations {
		out := op.Output.(output)
		if out.open {
			continue
		}
		if op.Input.(input).action == "incr" {
			counted++
		}
		if op.Return > last.Return {
			last = op
		}
		for _, v := range seen(op.Input.(input), out) {
			if at, known := firstSeen[v]; !known || op.Return < at {
				firstSeen[v] = op.Return
			}
		}
	}
	total := int64(0)
	if out, answered := last.Output.(output); answered {
		total, _ = strconv.ParseInt(out.result, 10, 64)
	}
	open := total - counted // increments without an answer that happened
	left := []porcupine.Operation{}
	for _, op := range operations { // in the order of calls
		in := op.Input.(input)
		if op.Output.(output).open {
			at, known := firstSeen[in.value]
			switch in.action {
			case "get", "range":
				continue
			case "incr":
				if open <= 0 {
					continue
				}
				open--
			default:
				if !known || at <= op.Call {
					continue
				}
				op.Return = at
			}
		}
		left = append(left, op)
	}
	return left
}

func check(operations []porcupine.Operation, limit time.Duration) porcupine.CheckResult {
	if porcupine.CheckOperationsTimeout(server, withoutIdle(operations), limit) == porcupine.Ok {
		return porcupine.Ok
	}
	return porcupine.CheckOperationsTimeout(server, operations, limit)
}

func show(directory, key string, operations []porcupine.Operation, limit time.Duration) {
	_, info := porcupine.CheckOperationsVerbose(server, operations, limit)
	page := filepath.Join(directory, key+".html")
	if err := porcupine.VisualizePath(server, info, page); err != nil {
		fmt.Fprintf(os.Stderr, "linear-porcupine: %v\n", err)
		return
	}
	fmt.Printf("violation of %s: %s\n", key, page)
}

func run() int {
	seconds := flag.Int("seconds", 60, "limit per key; beyond it the verdict is unknown")
	html := flag.String("html", "", "existing directory for the pages of violations")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "linear-porcupine: one history is needed")
		return 2
	}
	keys, err := read(flag.Arg(0))
	if err != nil {
		fmt.Fprintf(os.Stderr, "linear-porcupine: %s: %v\n", flag.Arg(0), err)
		return 2
	}
	answered, open, wrong, unknown := 0, 0, 0, 0
	limit := time.Duration(*seconds) * time.Second
	for key, operations := range keys {
		for _, op := range operations {
			if op.Output.(output).open {
				open++
			} else {
				answered++
			}
		}
		renumber(operations)
		switch check(operations, limit) {
		case porcupine.Illegal:
			wrong++
			if *html != "" {
				show(*html, key, operations, limit)
			}
		case porcupine.Unknown:
			unknown++
			fmt.Printf("unknown: %s with %d operations\n", key, len(operations))
		}
	}
	fmt.Printf("answered %d\nopen %d\nkeys %d\nviolations %d\nunknown %d\n", answered, open,
		len(keys), wrong, unknown)
	switch {
	case wrong > 0:
		fmt.Println("verdict violation")
		return 1
	case unknown > 0:
		fmt.Println("verdict unknown")
		return 3
	}
	fmt.Println("verdict ok")
	return 0
}

func main() { os.Exit(run()) }
