// SPDX-License-Identifier: Apache-2.0
//
// Reads a dataset with millrace and prints it in the JSON format of
// golden/megatron/read_with_megatron.py.
//
//   read_dataset PREFIX [--multimodal]

#include <cstdint>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/md5.hpp>

namespace {

using millrace::dataset::indexed_dataset;

template <class Get>
void print_list(const char* name, std::int64_t count, Get&& get) {
  std::cout << ", \"" << name << "\": [";
  for (std::int64_t i = 0; i < count; ++i) std::cout << (i == 0 ? "" : ", ") << get(i);
  std::cout << ']';
}

void print(const indexed_dataset& data, bool multimodal) {
  millrace::formats::md5 tokens;
  for (std::int64_t i = 0; i < data.sequence_count(); ++i) {
    const auto sequence = data.sequence(i);
    std::vector<std::int64_t> wide(static_cast<std::size_t>(sequence.size()));
    sequence.copy_to(std::span(wide));
    tokens.update(std::as_bytes(std::span(wide)));
  }
  std::cout << "{\"dtype\": \"" << name(data.type()) << "\", \"tokens_md5\": \"" << tokens.hex()
            << '"';
  print_list("lengths", data.sequence_count(), [&](auto i) { return data.sequence_length(i); });
  print_list("document_indices", data.document_count() + 1,
             [&](auto i) { return i == 0 ? std::int64_t{0} : data.document(i - 1).last; });
  if (multimodal) {
    print_list("modes", data.sequence_count(), [&](auto i) { return int{data.mode(i)}; });
  }
  std::cout << "}\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    print(indexed_dataset(argv[1], {.check = millrace::dataset::check_level::full}), argc > 2);
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
