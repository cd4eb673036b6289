// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>

namespace millrace::bench {

inline constexpr std::int64_t made_eod = 50256;

/// Returns a 64-bit integer that depends only on `x`. For successive values of `x`, the results
/// look random.
constexpr std::uint64_t scattered(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

namespace detail {

class made_file {
 public:
  explicit made_file(const std::string& path)
      : path_(path), out_(path, std::ios::binary | std::ios::trunc) {}

  template <class T>
  void put(std::span<const T> values) {
    out_.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
    if (!out_) throw error(path_ + ": cannot be written: check the folder and the space left");
  }
  void finish() {
    out_.close();
    if (!out_) throw error(path_ + ": cannot be written: check the folder and the space left");
  }

 private:
  std::string path_;
  std::ofstream out_;
};

template <class Token>
std::vector<std::int32_t> write_tokens(const std::string& path, std::int64_t tokens) {
  made_file bin(path);
  std::vector<std::int32_t> lengths;
  std::vector<Token> document;
  std::uint64_t at = 0;
  for (std::int64_t left = tokens; left > 0;) {
    const auto drawn = static_cast<std::int64_t>(1 + scattered(~at) % 4000);
    const std::int64_t length = left < drawn ? left : drawn;
    document.clear();
    for (std::int64_t i = 1; i < length; ++i) {
      document.push_back(
          static_cast<Token>(scattered(at++) % static_cast<std::uint64_t>(made_eod)));
    }
    document.push_back(static_cast<Token>(made_eod));
    ++at;
    bin.put(std::span<const Token>(document));
    lengths.push_back(static_cast<std::int32_t>(length));
    left -= length;
  }
  bin.finish();
  return lengths;
}

}  // namespace detail

/// Writes a dataset as PREFIX.bin and PREFIX.idx. The dataset has `tokens` random-looking ids in
/// documents of 1 to 4,000 tokens. Each document ends with `made_eod`. The same arguments always
/// give the same bytes.
///
/// @param wide  whether tokens are int32 instead of uint16
/// @throws error  a file cannot be written
inline void write_made_data(const std::filesystem::path& prefix, std::int64_t tokens, bool wide) {
  const std::string bin = prefix.string() + ".bin";
  const std::vector<std::int32_t> lengths = wide ? detail::write_tokens<std::int32_t>(bin, tokens)
                                                 : detail::write_tokens<std::uint16_t>(bin, tokens);
  std::vector<std::int64_t> documents;
  for (std::size_t i = 0; i <= lengths.size(); ++i) {
    documents.push_back(static_cast<std::int64_t>(i));
  }
  const auto type = wide ? formats::dtype::int32 : formats::dtype::uint16;
  detail::made_file idx(prefix.string() + ".idx");
  idx.put(std::span<const std::byte>(formats::encode_mmidx(type, lengths, documents)));
  idx.finish();
}

}  // namespace millrace::bench
