// SPDX-License-Identifier: Apache-2.0
// Encodes texts that come on stdin, for property/gpt2_against_hf.py:
//
//   encode_lines VOCAB_FILE MERGE_FILE
//
// in:  for each text its size in bytes as a little-endian uint32, then the text (UTF-8)
// out: for each text the number of its ids, then the ids, as little-endian uint32
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <millrace/tokenizer/make_tokenizer.hpp>

namespace {

bool read(std::uint32_t& value) {
  return static_cast<bool>(std::cin.read(reinterpret_cast<char*>(&value), sizeof value));
}

void write(const std::vector<std::int32_t>& ids, std::size_t count) {
  const auto number = static_cast<std::uint32_t>(count);
  std::cout.write(reinterpret_cast<const char*>(&number), sizeof number);
  std::cout.write(reinterpret_cast<const char*>(ids.data()),
                  static_cast<std::streamsize>(count * sizeof ids[0]));
}

int run(const char* vocab_file, const char* merge_file) {
  millrace::tokenizer::tokenizer_options options;
  options.type = "GPT2BPETokenizer";
  options.vocab_file = vocab_file;
  options.merge_file = merge_file;
  const auto tokenizer = millrace::tokenizer::make_tokenizer(options);
  const auto encoder = tokenizer->make_encoder();

  std::string text;
  std::vector<std::int32_t> ids;
  for (std::uint32_t size = 0; read(size);) {
    text.resize(size);
    if (!std::cin.read(text.data(), static_cast<std::streamsize>(size))) {
      std::cerr << "encode_lines: the input ends inside a text\n";
      return 1;
    }
    ids.resize(encoder->max_ids(text.size()));
    std::size_t count = 0;
    if (const auto fault = encoder->encode(text, ids.data(), count)) {
      std::cerr << "encode_lines: " << fault->what << " at byte " << fault->offset_bytes << '\n';
      return 1;
    }
    write(ids, count);
  }
  return std::cout.flush() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: encode_lines VOCAB_FILE MERGE_FILE\n";
    return 2;
  }
  std::ios::sync_with_stdio(false);
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& e) {
    std::cerr << "encode_lines: " << e.what() << '\n';
    return 1;
  }
}
