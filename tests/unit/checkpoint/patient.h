// SPDX-License-Identifier: Apache-2.0
// The test server of dump_test.cc (patient.c) and its test talk through the file "segment" of the
// directory bound to /run/crane. The test writes a word and raises `asked`; the server answers.
#ifndef CRANE_TESTS_PATIENT_H
#define CRANE_TESTS_PATIENT_H

#define PATIENT_THREADS 4
#define PATIENT_SEGMENT_BYTES 65536

enum patient_word {
  kPatientCheck = 1,  // answers which of its parts are correct (patient_part)
  kPatientChange,     // changes, deletes and creates files; prints a line
  kPatientExit,       // exits with `argument`
  kPatientUring,      // opens an io_uring
  kPatientQueue,      // opens a POSIX message queue
};

enum patient_part {
  kPatientMemory = 1,       // the secret in its memory; every thread continues to count
  kPatientChild = 2,        // its child of another user answers over a pipe, with its own secret
  kPatientDescriptors = 4,  // placeholder sockets, the doorbell, a file in /dev/shm
  kPatientFiles = 8,        // the files of kPatientChange
  kPatientUnlinked = 16,    // open files without a name, and with another name
  kPatientPersonality = 32,
  kPatientAll = 63,
};

struct patient_segment {
  unsigned asked;     // number of words so far
  unsigned answered;  // follows `asked`
  unsigned word;
  unsigned argument;
  unsigned answer;
  unsigned changes;  // number of kPatientChange so far; the server's memory has it, too
  int child;         // its pid as the server sees it
};

#endif
