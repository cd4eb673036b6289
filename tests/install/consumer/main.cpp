// SPDX-License-Identifier: Apache-2.0
// Prints the first window of a dataset. Usage: consumer PREFIX
#include <cstdint>
#include <exception>
#include <iostream>

#include "every_header.hpp"

std::int64_t vocabulary_seen_by_the_second_unit();

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: consumer PREFIX\n";
    return 2;
  }
  const millrace::dataset::indexed_dataset data(argv[1]);
  millrace::loader::batch_loader loader(data, {.batch_size = 1, .seq_len = 8});
  const auto batch = loader.next();
  if (!batch) return 1;
  std::cout << "first window:";
  for (const std::int64_t token : batch->tokens()) std::cout << ' ' << token;
  std::cout << "\nvocabulary: " << vocabulary_seen_by_the_second_unit() << '\n';
} catch (const std::exception& failure) {
  std::cerr << "consumer: " << failure.what() << '\n';
  return 1;
}
