// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/convert.hpp>
#include <millrace/dataset/detail/dataset_writer.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/atomic_file.hpp>

#include "token_source.hpp"

namespace millrace::dataset::detail {

/// The type of the tokens in the output.
/// @throws config_error  the format cannot hold `options.output_type`
formats::dtype output_type(const token_source& source, const convert_options& options);

/// Refuses to write over an input, or over a file that exists.
/// @throws config_error  `path` is an input; or it exists, and `overwrite` is false
void check_new_file(const std::filesystem::path& path, const token_source& source, bool overwrite);
/// @throws config_error  the folder of the new files does not exist
void check_folder(const std::filesystem::path& prefix);
/// @throws config_error  something would be lost, and `options.lossy` is false
void refuse_losses(const std::vector<std::string>& lost, const convert_options& options);

/// Packs the documents of a dataset, and writes the rows to PREFIX.idx.parquet and what Bridge
/// wants to know about them to PREFIX.packing.json. Adds to `done`, also to its losses.
///
/// @throws config_error  an option is missing or wrong, a file exists, something would be lost
/// @throws format_error  the dataset or its mask is damaged
/// @throws io_error      a file cannot be read or written
/// @pre source.data
void convert_to_rows(const token_source& source, const std::filesystem::path& prefix,
                     const convert_options& options, conversion& done);

/// What `convert` writes.
class token_target {
 public:
  /// Opens all files.
  ///
  /// @throws config_error  a file exists, or is an input; the folder does not exist; there would be
  ///                       too many shards, or too many tokens in a file of llm.c
  /// @throws io_error, error  a file cannot be created; the disk is too small
  token_target(const std::filesystem::path& prefix, const token_source& source, formats::dtype type,
               const convert_options& options);

  formats::dtype type() const noexcept { return type_; }
  /// Only of a dataset.
  std::optional<dataset_writer>& dataset() noexcept { return dataset_; }

  void append(std::span<const std::byte> tokens);
  /// Appends bytes of another file, which are tokens of this type.
  /// @return bytes copied; fewer than `size` only if the other file ends
  /// @pre !dataset()
  std::uint64_t append_copy(const io::unique_fd& from, const std::filesystem::path& from_path,
                            std::uint64_t offset, std::uint64_t size);
  /// Appends the bits of the next tokens. @pre the source has a mask, and the format a place for it
  void append_mask(const formats::bit_span& bits);
  /// Ends a document at this token. In a dataset, it becomes a document of one sequence, or of none
  /// if it is empty.
  void append_end(std::int64_t end);

  /// Completes all files, gives them their final names, and adds them to `done`.
  ///
  /// @param origins  the inputs that PREFIX.src lists
  void publish(const convert_options& options, std::span<const formats::src_input> origins,
               conversion& done);

 private:
  void flush_ends();
  void append_rows(bool is_last);

  std::filesystem::path prefix_;
  token_format format_;
  formats::dtype type_;
  std::optional<dataset_writer> dataset_;
  std::deque<io::atomic_file> arrays_;       // one, or the shards
  std::size_t array_ = 0;                    // the shard that is written
  std::uint64_t shard_bytes_ = 0;            // tokens of a full shard, with its header; 0: no limit
  std::optional<io::atomic_file> ends_;      // `.ds.index` or `.csv.gz`
  std::optional<io::atomic_file> metadata_;  // `.ds.metadata`
  std::optional<io::atomic_file> mask_;      // a byte per token
  std::filesystem::path old_mask_;           // to be removed
  std::vector<std::int64_t> unwritten_ends_;
  std::vector<std::int32_t> unwritten_lengths_;
  std::string unwritten_rows_;
  std::function<void(std::string_view, bool, std::string&)> gzip_;
  std::int64_t last_end_ = 0;
  std::int64_t sequences_ = 0;
};

}  // namespace millrace::dataset::detail
