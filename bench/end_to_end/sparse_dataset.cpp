// SPDX-License-Identifier: Apache-2.0
//
// Creates a dataset of DOCUMENTS documents. Its `.bin` is a sparse file that takes no disk space.
//
//   bench_sparse_dataset PREFIX DOCUMENTS
//
// The `.idx` takes 20 bytes per document: 20 GB for 10^9 documents.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "bench/support/sparse_dataset.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const std::int64_t documents = std::stoll(argv[2]);
    if (documents < 1) return 2;
    millrace::bench::write_sparse_dataset(argv[1], documents);
  } catch (const std::exception& e) {
    (void)std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
