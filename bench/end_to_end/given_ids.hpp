// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include <simdjson.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::bench {

/// A tokenizer that does not tokenize: it looks up the ids of a text in a dataset that a real
/// tokenizer made from the same file. So a run with this tokenizer does everything except
/// tokenizing.
///
/// A look-up also takes time, but less than tokenizing. seconds() returns the total time that
/// look-ups took in all threads, so that the caller can subtract this time.
class given_ids final : public tokenizer::tokenizer {
 public:
  /// @param prefix  prefix of the dataset, which was made without `--append-eod`
  /// @param input   the JSON lines that the dataset was made from; each line has one string, with
  ///                the key `text`
  /// @throws config_error  the file cannot be read, or its number of lines is not the number of
  ///                       documents in the dataset
  given_ids(const std::filesystem::path& prefix, const std::filesystem::path& input)
      : dataset_(prefix) {
    std::ifstream lines(input);
    if (!lines) throw config_error(input.string() + ": cannot be read");
    simdjson::dom::parser parser;
    std::int64_t document = 0;
    for (std::string line; std::getline(lines, line); ++document) {
      if (document >= dataset_.document_count()) continue;
      ids_[key_of(std::string_view(parser.parse(line)["text"]))] =
          dataset_.document_tokens(document);
    }
    if (document != dataset_.document_count()) {
      throw config_error(prefix.string() + ": has " + std::to_string(dataset_.document_count()) +
                         " documents, expected one for each line of " + input.string());
    }
  }

  std::unique_ptr<millrace::tokenizer::encoder> make_encoder(std::size_t) const override {
    return std::make_unique<looking_up>(*this);
  }
  /// Returns a vocabulary size that makes a run choose the dtype that `dataset_` has.
  std::int64_t vocab_size() const noexcept override {
    return dataset_.type() == formats::dtype::uint16 ? 512 : 1 << 20;
  }
  std::optional<std::int32_t> eod() const noexcept override { return std::nullopt; }
  std::string decode(std::span<const std::int64_t>) const override { return {}; }
  std::string fingerprint() const override { return {}; }

  std::int64_t token_count() const noexcept { return dataset_.token_count(); }
  double seconds() const noexcept { return static_cast<double>(nanoseconds_) * 1e-9; }

 private:
  class looking_up final : public millrace::tokenizer::encoder {
   public:
    explicit looking_up(const given_ids& given) : given_(given) {}

    std::optional<millrace::tokenizer::encode_fault> encode(
        std::string_view text, millrace::tokenizer::id_buffer& ids) override {
      const auto start = std::chrono::steady_clock::now();
      const auto found = given_.ids_.find(key_of(text));
      if (found == given_.ids_.end()) {
        return millrace::tokenizer::encode_fault{0, "the dataset has no ids for this text"};
      }
      const auto count = static_cast<std::size_t>(found->second.size());
      found->second.copy_to(std::span<std::int32_t>(ids.room(count), count));
      ids.add(count);
      given_.nanoseconds_ += (std::chrono::steady_clock::now() - start).count();
      return std::nullopt;
    }

   private:
    const given_ids& given_;
  };

  // Returns the key under which the ids of a text are found: the 64-bit hash of the whole text,
  // because texts may have equal beginnings.
  static std::size_t key_of(std::string_view text) { return std::hash<std::string_view>()(text); }

  dataset::indexed_dataset dataset_;
  std::unordered_map<std::size_t, dataset::token_view> ids_;
  mutable std::atomic<std::int64_t> nanoseconds_ = 0;
};

}  // namespace millrace::bench
