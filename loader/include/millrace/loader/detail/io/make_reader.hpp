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

/// Collects facts about the files and the machine for `choose_reader`. A file that cannot be
/// queried counts as local and not cached. The error is reported when the file is read.
MILLRACE_EXPORT reader_facts facts_of(const std::vector<data_file>& files,
                                      const io_options& options);

/// Creates a reader with the requested back end. If the back end is auto, `choose_reader` selects
/// it. If io_uring or cuFile cannot be used, pread reads instead. The reader's report says which
/// back end was requested, which is in use, and why.
///
/// @throws config_error  the options or the environment variable name an unknown back end, or a
///                       value is out of range
MILLRACE_EXPORT std::unique_ptr<range_reader> make_reader(std::vector<data_file> files,
                                                          const io_options& options = {});

}  // namespace millrace::loader
