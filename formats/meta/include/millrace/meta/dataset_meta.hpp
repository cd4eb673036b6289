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

/// `P.meta`, what a dataset was made of and how. Specification: formats/spec/meta.md.
namespace millrace::formats {

inline constexpr std::int64_t meta_version = 1;

/// A run of bytes of one input, decompressed: all of it, or what one task read of it.
struct input_extent {
  std::string path;              ///< as it was given
  std::uint64_t begin = 0;       ///< in the decompressed text; 0 unless a task began within
  std::uint64_t text_bytes = 0;  ///< below 2^63
  std::uint32_t crc32c = 0;      ///< of these bytes
  std::int64_t lines = 0;        ///< line ends in them, and a last line without one

  bool operator==(const input_extent&) const = default;
};

/// Where a place of a share lies: in which of the run's inputs, from 0, and at which byte of its
/// text.
struct share_place {
  std::uint64_t input = 0;
  std::uint64_t byte = 0;

  bool operator==(const share_place&) const = default;
};

/// What tasks read of the inputs of their run. It follows from the names and sizes of all of them,
/// so that it tells whether these were the same for two tasks as far as that matters: then the one
/// ends where the next begins, and no line is lost between them or there twice.
struct share_bounds {
  share_place begin;
  share_place end;
  std::uint32_t names_crc32c = 0;  ///< of the paths of all inputs, each with a zero behind it

  bool operator==(const share_bounds&) const = default;
};

/// The tasks, one or several in a row, that a dataset comes from. All of them together are no
/// tasks, but a whole.
struct task_range {
  std::int64_t first = 0;
  std::int64_t last = 0;  ///< itself included
  std::int64_t of = 1;
  std::optional<share_bounds> share;  ///< nothing where it was not written down

  bool operator==(const task_range&) const = default;
};

/// What identifies a tokenizer. Equal ones give equal ids.
struct tokenizer_identity {
  std::string type;         ///< as `--tokenizer-type` names it
  std::string fingerprint;  ///< tokenizer::fingerprint()
  std::int64_t vocab_size = 0;
  std::optional<std::int64_t> eod;

  bool operator==(const tokenizer_identity&) const = default;
};

/// What was met. Counts of parts add up to those of the whole.
struct meta_counts {
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::int64_t lines = 0;
  std::int64_t blank_lines = 0;
  std::int64_t lone_surrogates = 0;
  std::int64_t special_tokens = 0;
  std::int64_t text_bytes = 0;  ///< UTF-8 bytes given to the tokenizer
  /// Name of each kind, whether it was met or not, and how many were.
  std::vector<std::pair<std::string, std::int64_t>> bad_records;

  bool operator==(const meta_counts&) const = default;
};

/// What `P.meta` says: all that decides the bytes of a dataset, and what came of it. Nothing of
/// how a run went (workers, kills, dates, hosts, the name of the output) may ever be put here.
struct dataset_meta {
  std::string level = "document";  ///< or "sentence"
  std::string key = "text";        ///< as in the name of the output
  std::string path = "text";       ///< where the text is in a record, as it was given
  dtype type = dtype::uint16;
  bool append_eod = false;
  std::string on_bad_record = "fail";
  /// Further flags that change bytes, those with their usual value too: names, each once, and
  /// values, in an order that is the program's own.
  std::vector<std::pair<std::string, std::string>> options;
  tokenizer_identity tokenizer;
  std::optional<std::int64_t> sum_version;  ///< of `P.sum`; nothing where there is none
  std::optional<std::int64_t> src_version;  ///< of `P.src`; nothing where there is none
  std::optional<task_range> tasks;          ///< nothing in a whole
  std::vector<input_extent> inputs;         ///< in order; the names in `P.src` are their paths
  meta_counts counts;
  std::uint64_t bin_bytes = 0;
  std::optional<std::string> sum_root;  ///< of `P.sum`: there if and only if that is

  bool operator==(const dataset_meta&) const = default;
};

/// The file's contents: one line of JSON and a line end. Equal metas give equal bytes.
std::string to_json(const dataset_meta& meta);

/// Whether `path`, as a meta has it, is the name of a file. Metas of earlier versions have U+FFFD
/// in place of each byte that is not UTF-8.
bool is_path_of(std::string_view path, std::string_view name);

/// Size of the file, at most, whether or not the root of `P.sum` is known yet.
std::size_t meta_bytes(const dataset_meta& meta);

/// @throws format_error  it is not JSON, not of this version, an entry is missing, unknown, there
///                       twice or of another type, or entries contradict each other.
dataset_meta parse_meta(std::string_view json);

}  // namespace millrace::formats
