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
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/dtype.hpp>

namespace millrace::dataset::detail {

/// The tokens in one file.
struct token_file {
  std::filesystem::path path;
  std::uint64_t begin = 0;  ///< bytes before the first token
  std::int64_t tokens = 0;
};

/// Returns the end of the next document, in tokens from the start of the source; nullopt after the
/// last document. Checks what it reads.
using next_end = std::function<std::optional<std::int64_t>()>;

/// What `convert` reads.
struct token_source {
  token_format format = token_format::megatron;
  formats::dtype type = formats::dtype::uint16;
  std::vector<token_file> files;
  std::int64_t tokens = 0;
  std::function<next_end()> open_ends;     ///< empty if the source does not say where documents end
  std::shared_ptr<indexed_dataset> data;   ///< only of a dataset
  std::optional<document_sources> places;  ///< of a dataset with a PREFIX.src
  std::string tokenizer;                   ///< that a `.ds.metadata` names; or empty
  std::vector<std::string> lost;           ///< what no output can hold
  /// Counted by a first pass over `open_ends`.
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;
};

/// Opens all inputs. Reads and checks everything but the tokens.
///
/// @throws config_error  an option is missing or contradicts an input
/// @throws format_error  an input is damaged
/// @throws io_error      an input cannot be read
token_source open_source(std::span<const std::filesystem::path> inputs,
                         const convert_options& options);

}  // namespace millrace::dataset::detail
