// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/formats/detail/src_code.hpp>
#include <millrace/formats/dtype.hpp>

/// `P.meta` records what a dataset was made from, and how. Specification: formats/spec/meta.md.
namespace millrace::formats {

inline constexpr std::int64_t meta_version = 1;

/// A range of one input's decompressed bytes: the whole input, or the part that one task read. The
/// text of a Parquet file is its rows, one line of JSON each.
struct input_extent {
  std::string path;              ///< as the user gave it
  std::uint64_t begin = 0;       ///< first byte or row; 0 unless a task began inside the input
  std::uint64_t text_bytes = 0;  ///< number of bytes; below 2^63
  std::uint32_t crc32c = 0;      ///< CRC-32C of these bytes
  /// Line ends in these bytes, plus 1 if the last line has no line end.
  std::int64_t lines = 0;
  bool has_rows = false;  ///< a Parquet file

  /// The byte or row after the range, in the unit of `begin`.
  std::uint64_t end() const noexcept {
    return begin + (has_rows ? static_cast<std::uint64_t>(lines) : text_bytes);
  }

  bool operator==(const input_extent&) const = default;
};

/// A position in the inputs of a run: the index of the input, and the byte in its decompressed
/// text, or the row of a Parquet file. All count from 0.
struct share_place {
  std::uint64_t input = 0;
  std::uint64_t byte = 0;

  bool operator==(const share_place&) const = default;
};

/// The share of a run's inputs that was read by one task, or by several consecutive tasks. A share
/// is computed from the names and sizes of all inputs. If two consecutive tasks found the same
/// names and sizes, the second share begins where the first share ends. So no line is lost or
/// repeated.
struct share_bounds {
  share_place begin;
  share_place end;
  std::uint32_t names_crc32c = 0;  ///< CRC of the paths of all inputs, each followed by a zero byte

  bool operator==(const share_bounds&) const = default;
};

/// The task, or the consecutive tasks, that wrote a dataset. A dataset that is the work of all
/// tasks is called a whole, and has no task range.
struct task_range {
  std::int64_t first = 0;
  std::int64_t last = 0;  ///< inclusive
  std::int64_t of = 1;
  std::optional<share_bounds> share;  ///< empty if it was not recorded

  bool operator==(const task_range&) const = default;
};

/// Identifies a tokenizer. Tokenizers with equal identities give equal ids.
struct tokenizer_identity {
  std::string type;         ///< as `--tokenizer-type` names it
  std::string fingerprint;  ///< tokenizer::fingerprint()
  std::int64_t vocab_size = 0;
  std::optional<std::int64_t> eod;
  /// The flags that name its files, and the other flags that made it, as words of a command line.
  /// Empty if it has no files, or if they are unknown.
  std::vector<std::string> flags = {};

  /// Compares all but the flags: the same tokenizer may lie in several places.
  bool operator==(const tokenizer_identity& other) const {
    return type == other.type && fingerprint == other.fingerprint &&
           vocab_size == other.vocab_size && eod == other.eod;
  }
};

/// Counts of the processed data. The counts of parts add up to the counts of the whole.
struct meta_counts {
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::int64_t lines = 0;
  std::int64_t blank_lines = 0;
  std::int64_t lone_surrogates = 0;
  std::int64_t special_tokens = 0;
  std::int64_t text_bytes = 0;   ///< UTF-8 bytes given to the tokenizer
  std::int64_t not_sampled = 0;  ///< records that `--sample-rate` left out
  std::int64_t duplicates = 0;   ///< documents that `--drop-duplicates` left out
  std::int64_t overlong = 0;     ///< conversations that were dropped because of their length
  std::int64_t truncated = 0;    ///< conversations whose last tokens were dropped
  /// Name and count of each kind of bad record, including kinds with count 0.
  std::vector<std::pair<std::string, std::int64_t>> bad_records;

  bool operator==(const meta_counts&) const = default;
};

/// What `P.meta` says of `P.mask`.
struct mask_identity {
  std::int64_t version = 1;
  std::int64_t trained = 0;  ///< number of tokens that are to be predicted
  std::string root;          ///< root of `P.mask`, 64 hexadecimal digits; empty if not yet known

  bool operator==(const mask_identity&) const = default;
};

/// The contents of `P.meta`: everything that determines the bytes of a dataset, and the counts,
/// size and checksum of the result. Never add facts about how a run went (workers, kills, dates,
/// hosts, the name of the output).
struct dataset_meta {
  std::string level = "document";  ///< or "sentence"
  std::string key = "text";        ///< the key of the text, as in the name of the output
  std::string path = "text";       ///< the place of the text in a record, as the user gave it
  dtype type = dtype::uint16;
  bool append_eod = false;
  std::string on_bad_record = "fail";
  /// Names and values of all other flags that affect the bytes, including flags with their default
  /// value. Each name occurs once. The program determines the order.
  std::vector<std::pair<std::string, std::string>> options;
  tokenizer_identity tokenizer;
  std::optional<std::int64_t> sum_version;  ///< version of `P.sum`; empty if there is none
  std::optional<std::int64_t> src_version;  ///< version of `P.src`; empty if there is none
  std::optional<task_range> tasks;          ///< empty for a whole (see `task_range`)
  std::vector<input_extent> inputs;         ///< in order; the names in `P.src` are their paths
  meta_counts counts;
  std::uint64_t bin_bytes = 0;
  std::optional<std::string> sum_root;  ///< root of `P.sum`; set if and only if there is one
  std::optional<mask_identity> mask;    ///< set if and only if there is a `P.mask`

  bool operator==(const dataset_meta&) const = default;
};

/// Returns the contents of the file: one line of JSON and a line end. Equal metas give equal bytes.
std::string to_json(const dataset_meta& meta);

/// True if `path`, taken from a meta, is the path of the file `name`. In metas of earlier versions,
/// U+FFFD replaces each byte that is not UTF-8.
bool is_path_of(std::string_view path, std::string_view name);

/// Maximum size of the file in bytes. It is the same whether or not the roots are known yet.
std::size_t meta_bytes(const dataset_meta& meta);

/// @throws format_error  the text is not JSON or has another version; an entry is missing, unknown,
///                       repeated or of the wrong type; or entries contradict each other.
dataset_meta parse_meta(std::string_view json);

}  // namespace millrace::formats
