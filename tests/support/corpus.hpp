// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/formats/detail/md5.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "support/encode.hpp"

namespace millrace::test {

/// The number of documents and tokens of an encoded corpus, and checksums of its ids.
struct token_stream {
  std::int64_t docs = 0;
  std::int64_t tokens = 0;
  std::string ids_md5;      ///< MD5 of all ids, each as little-endian uint32
  std::string lengths_md5;  ///< MD5 of the number of ids per document, as little-endian int32

  bool operator==(const token_stream&) const = default;
};

inline void PrintTo(const token_stream& stream, std::ostream* out) {
  *out << stream.docs << " docs, " << stream.tokens << " tokens, ids " << stream.ids_md5
       << ", lengths " << stream.lengths_md5;
}

/// Encodes the values of the key "text" in a gzip-compressed file of JSON lines.
/// @param prepare  changes each line before it is parsed; null: no change
inline token_stream encode_corpus(const tokenizer::tokenizer& tokenizer,
                                  const std::filesystem::path& jsonl_gz,
                                  std::string (*prepare)(std::string line) = nullptr) {
  std::ifstream file(jsonl_gz, std::ios::binary);
  boost::iostreams::filtering_istream in;
  in.push(boost::iostreams::gzip_decompressor());
  in.push(file);
  const auto encoder = tokenizer.make_encoder();
  simdjson::dom::parser parser;
  formats::md5 all_ids;
  token_stream stream;
  std::vector<std::int32_t> lengths;
  for (std::string line; std::getline(in, line);) {
    if (prepare != nullptr) line = prepare(std::move(line));
    const auto ids = encode(*encoder, std::string_view(parser.parse(line)["text"]));
    all_ids.update(std::as_bytes(std::span(ids)));
    lengths.push_back(static_cast<std::int32_t>(ids.size()));
    stream.tokens += static_cast<std::int64_t>(ids.size());
  }
  stream.docs = static_cast<std::int64_t>(lengths.size());
  stream.ids_md5 = all_ids.hex();
  stream.lengths_md5 = formats::md5().update(std::as_bytes(std::span(lengths))).hex();
  return stream;
}

/// Returns the path of a tokenizer's file, relative to the folder `shared`.
inline std::filesystem::path golden_file(const std::filesystem::path& shared,
                                         std::string_view tokenizer) {
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.load((shared / "golden/tokenizers.json").string());
  return std::string(std::string_view(all["tokenizers"][tokenizer]["file"]));
}

/// Returns the result that the golden files hold for the reference tokenizer.
inline token_stream expected_stream(const std::filesystem::path& shared, std::string_view tokenizer,
                                    std::string_view corpus) {
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.load((shared / "golden/tokenizers.json").string());
  const simdjson::dom::element stream = all["tokenizers"][tokenizer]["corpora"][corpus];
  return {.docs = std::int64_t(stream["docs"]),
          .tokens = std::int64_t(stream["tokens"]),
          .ids_md5 = std::string(std::string_view(stream["ids_u32le_md5"])),
          .lengths_md5 = std::string(std::string_view(stream["lengths_i32le_md5"]))};
}

}  // namespace millrace::test
