// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/convert.hpp>
#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/formats/dtype.hpp>

namespace millrace::dataset::detail {

/// The tokens in one file.
struct token_file {
  std::filesystem::path path;
  std::uint64_t begin = 0;  ///< bytes before the first token
  std::int64_t tokens = 0;  ///< of packed rows, only about as many
};

/// Returns the end of the next document, in tokens from the start of the source; nullopt after the
/// last document. Checks what it reads.
using next_end = std::function<std::optional<std::int64_t>()>;

/// What `convert` reads.
struct token_source {
  token_format format = token_format::megatron;
  formats::dtype type = formats::dtype::uint16;
  std::vector<token_file> files;
  std::int64_t tokens = 0;                 ///< the sum of those of the files
  std::function<next_end()> open_ends;     ///< empty if the source does not say where documents end
  std::shared_ptr<indexed_dataset> data;   ///< only of a dataset
  std::optional<document_sources> places;  ///< of a dataset with a PREFIX.src
  std::optional<token_mask> mask;          ///< of a dataset with a PREFIX.mask
  /// Per file, the array that says which tokens are to be predicted, a byte 0 or 1 for each; empty
  /// if there is none.
  std::vector<std::filesystem::path> mask_files;
  std::string tokenizer;          ///< that a `.ds.metadata` names; or empty
  std::vector<std::string> lost;  ///< what no output can hold
  /// Counted by a first pass over `open_ends`.
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;

  bool has_mask() const noexcept {
    return mask || !mask_files.empty() || format == token_format::bridge;
  }
};

/// The path of the mask of an array `.ds` or `.npy`.
std::filesystem::path mask_path(const std::filesystem::path& array, token_format format);

/// Calls take(bits) for the mask of all tokens, in pieces.
///
/// @throws format_error  a byte is neither 0 nor 1
/// @pre source.has_mask(), and it is not of packed rows
void for_each_mask_piece(const token_source& source,
                         const std::function<void(const formats::bit_span& bits)>& take);

/// Opens all inputs. Reads and checks everything but the tokens.
///
/// @throws config_error  an option is missing or contradicts an input
/// @throws format_error  an input is damaged
/// @throws io_error      an input cannot be read
token_source open_source(std::span<const std::filesystem::path> inputs,
                         const convert_options& options);

}  // namespace millrace::dataset::detail
