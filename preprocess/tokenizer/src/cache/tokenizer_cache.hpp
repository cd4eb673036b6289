// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// SHA-256 of the sources of this library, in hexadecimal. Whatever is changed there, the tables of
/// other builds are not used any more.
extern const char* const source_digest;

/// Returns the tokenizer from its cache file in `options.cache`, or calls `make` and writes that
/// file. Both give the same ids and the same fingerprint. A cache that cannot be used is never an
/// error: the tokenizer then has a note that says why.
///
/// The key of the file is made of `build`, of all options that `make` uses and of the contents of
/// all files that it reads. Only byte-level BPE has tables that are worth a file.
///
/// @param make   creates the tokenizer from its files
/// @param build  identifies the code that made and reads the tables
/// @pre options.cache is not empty
/// @throws whatever `make` throws
std::unique_ptr<tokenizer> make_with_cache(const tokenizer_options& options,
                                           const std::function<std::unique_ptr<tokenizer>()>& make,
                                           std::string_view build = source_digest);

}  // namespace millrace::tokenizer::detail
