// SPDX-License-Identifier: Apache-2.0
// Encodes texts, or decodes ids, with a SentencePiece model, for the scripts of property/:
//
//   sentencepiece_lines MODEL encode|decode|encode-extra
//
// encode in:    for each text, its size in bytes as a little-endian uint32, then the text (UTF-8)
// encode out:   for each text, the number of its ids, then the ids, all as little-endian uint32
// decode:       the same formats, but with ids as input and texts as output
// encode-extra: same as encode, but keeps extra white space as Megatron does
//
// To encode, the program uses several encoders: with and without a large cache, for each
// instruction set that this machine has. Each encoder encodes each text twice: first with a cold
// cache, then with a warm cache. The program fails if the ids differ.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sentencepiece/sentencepiece_tokenizer.hpp"

namespace {

using namespace millrace::tokenizer;  // a small program

bool read(std::uint32_t& value) {
  return static_cast<bool>(std::cin.read(reinterpret_cast<char*>(&value), sizeof value));
}

void write(std::uint32_t number, const void* bytes, std::size_t size) {
  std::cout.write(reinterpret_cast<const char*>(&number), sizeof number);
  std::cout.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
}

std::vector<std::int32_t> ids_of(encoder& engine, const std::string& text) {
  id_buffer ids;
  if (const auto fault = engine.encode(text, ids)) throw std::runtime_error(fault->what);
  return {ids.ids().begin(), ids.ids().end()};
}

int encode(const std::string& model, const detail::sentencepiece_options& options) {
  std::vector<std::unique_ptr<tokenizer>> tokenizers;
  std::vector<std::unique_ptr<encoder>> encoders;
  for (const auto set : {detail::instruction_set::portable, detail::instruction_set::neon,
                         detail::instruction_set::avx2, detail::instruction_set::avx512}) {
    if (!detail::can_run(set)) continue;
    for (const std::size_t memory : {std::size_t{0}, std::size_t{1} << 20}) {
      auto other = options;
      other.tuning = {memory, set};
      tokenizers.push_back(detail::make_sentencepiece_tokenizer(model, other));
      encoders.push_back(tokenizers.back()->make_encoder(memory));
    }
  }
  std::string text;
  for (std::uint32_t size = 0; read(size);) {
    text.resize(size);
    if (!std::cin.read(text.data(), static_cast<std::streamsize>(size))) return 1;
    const auto ids = ids_of(*encoders.front(), text);
    const bool equal = std::ranges::all_of(encoders, [&](const auto& one) {
      return ids_of(*one, text) == ids && ids_of(*one, text) == ids;
    });
    if (!equal) {
      std::cerr << "sentencepiece_lines: the ids depend on the cache: " << text << '\n';
      return 1;
    }
    write(static_cast<std::uint32_t>(ids.size()), ids.data(), 4 * ids.size());
  }
  return std::cout.flush() ? 0 : 1;
}

int decode(const std::string& model) {
  const auto tokenizer = detail::make_sentencepiece_tokenizer(model, {});
  for (std::uint32_t count = 0; read(count);) {
    std::vector<std::int32_t> ids(count);
    if (!std::cin.read(reinterpret_cast<char*>(ids.data()),
                       static_cast<std::streamsize>(4 * ids.size()))) {
      return 1;
    }
    const std::string text = tokenizer->decode(std::vector<std::int64_t>(ids.begin(), ids.end()));
    write(static_cast<std::uint32_t>(text.size()), text.data(), text.size());
  }
  return std::cout.flush() ? 0 : 1;
}

int run(const std::string& model, const std::string& mode) {
  if (mode == "decode") return decode(model);
  detail::sentencepiece_options options;
  options.ignore_extra_whitespaces = mode != "encode-extra";
  return encode(model, options);
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  if (argc != 3) {
    std::cerr << "usage: sentencepiece_lines MODEL encode|decode|encode-extra\n";
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& e) {
    std::cerr << "sentencepiece_lines: " << e.what() << '\n';
    return 1;
  }
}
