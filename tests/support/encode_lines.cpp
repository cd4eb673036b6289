// SPDX-License-Identifier: Apache-2.0
// Encodes texts from stdin, for the scripts of property/:
//
//     encode_lines <the tokenizer flags of preprocess_data>
//
// in:  for each text, its size in bytes as a little-endian uint32, then the text (UTF-8)
// out: for each text, the number of its ids, then the ids, all as little-endian uint32
#include <cstdint>
#include <exception>
#include <iostream>
#include <span>
#include <string>

#include <boost/program_options.hpp>

#include <millrace/tokenizer/tokenizer.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

namespace {

bool read(std::uint32_t& value) {
  return static_cast<bool>(std::cin.read(reinterpret_cast<char*>(&value), sizeof value));
}

void write(std::span<const std::int32_t> ids) {
  const auto number = static_cast<std::uint32_t>(ids.size());
  std::cout.write(reinterpret_cast<const char*>(&number), sizeof number);
  std::cout.write(reinterpret_cast<const char*>(ids.data()),
                  static_cast<std::streamsize>(ids.size_bytes()));
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, millrace::tokenizer::tokenizer_flags()), given);
  const auto options = millrace::tokenizer::tokenizer_options_of(given);
  const auto tokenizer = millrace::tokenizer::make_tokenizer(options.value());
  const auto encoder = tokenizer->make_encoder();

  std::string text;
  millrace::tokenizer::id_buffer ids;
  for (std::uint32_t size = 0; read(size);) {
    text.resize(size);
    if (!std::cin.read(text.data(), static_cast<std::streamsize>(size))) {
      std::cerr << "encode_lines: the input ends inside a text\n";
      return 1;
    }
    ids.clear();
    if (const auto fault = encoder->encode(text, ids)) {
      std::cerr << "encode_lines: " << fault->what << " at byte " << fault->offset_bytes << '\n';
      return 1;
    }
    write(ids.ids());
  }
  return std::cout.flush() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "encode_lines: " << e.what() << '\n';
    return 1;
  }
}
