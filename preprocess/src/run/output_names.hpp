// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "run/run_options.hpp"

/// The datasets that a run writes, by name.
namespace millrace::preprocess {

/// PREFIX_KEY_document, or PREFIX_KEY_sentence; one a key.
///
/// @throws config_error  a key cannot be part of a file name.
std::vector<std::filesystem::path> output_prefixes(const run_options& options);

/// The name of a dataset does not tell the prefix from the key: `o` with a_b, and `o_a` with b,
/// both give o_a_b_document. Call it before a run begins, holding the journal of its own prefix:
/// what an unfinished run under another prefix left must not be overwritten, for that would go on
/// with it.
///
/// @param prefixes  of output_prefixes()
/// @throws config_error  such a run has one of these datasets.
void refuse_datasets_of_others(const run_options& options,
                               std::span<const std::filesystem::path> prefixes);

}  // namespace millrace::preprocess
