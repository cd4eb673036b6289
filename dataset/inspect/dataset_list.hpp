// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace millrace::inspect {

/// Expands the PREFIX arguments of a verb that takes any number of datasets. An argument may be:
///
/// - a prefix, or the path of its `.idx`;
/// - a folder: all datasets in it and its subfolders, sorted by byte value of the whole path;
/// - a pattern with `*`, `?` or `[...]`: the matching datasets and folders, sorted;
/// - a weight of Megatron's `--data-path`, as `parse_blend_list` recognizes it, which is ignored.
///
/// @return prefixes, each once
/// @throws config_error  as `parse_blend_list` and `suggest_dataset`; a folder has no dataset; a
///                       pattern matches nothing
/// @throws io_error      a folder cannot be read
std::vector<std::string> dataset_prefixes(std::span<const std::string> words);

/// True if the words name several datasets: more than one word, a folder or a pattern.
/// @pre !words.empty()
bool are_several(std::span<const std::string> words);

}  // namespace millrace::inspect
