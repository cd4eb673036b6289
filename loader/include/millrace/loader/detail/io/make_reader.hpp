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

/// What can be known of files and machine, for `choose_reader`. Files that cannot be asked about
/// count as local and cold: they say what is wrong when they are read.
MILLRACE_EXPORT reader_facts facts_of(const std::vector<data_file>& files,
                                      const io_options& options);

/// The reader that was asked for, or the best one here. Its report says what was asked, what was
/// granted, and why.
///
/// @throws config_error  options or the environment name no reader, or a value is out of range
MILLRACE_EXPORT std::unique_ptr<range_reader> make_reader(std::vector<data_file> files,
                                                          const io_options& options = {});

}  // namespace millrace::loader
