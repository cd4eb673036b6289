// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/formats/detail/sidecar.hpp>
#include <millrace/io/detail/dataset_files.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {

using formats::all_sidecars;
using formats::sidecar;
using formats::suffix_of;
using io::dataset_paths;
using io::is_file;
using io::sidecar_set;

}  // namespace millrace::preprocess
