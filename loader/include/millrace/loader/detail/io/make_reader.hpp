// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <memory>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/io_options.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/reader_choice.hpp>

namespace millrace::loader {

/// Collects facts about the files and the machine for `choose_reader`. Files that cannot be queried
/// count as local and not cached; the error is reported when they are read.
MILLRACE_EXPORT reader_facts facts_of(const std::vector<data_file>& files,
                                      const io_options& options);

/// Creates the requested reader, or the best one here. Its report says what was requested, what was
/// granted, and why.
///
/// @throws config_error  the options or the environment name no known reader, or a value is out of
///                       range
MILLRACE_EXPORT std::unique_ptr<range_reader> make_reader(std::vector<data_file> files,
                                                          const io_options& options = {});

}  // namespace millrace::loader
