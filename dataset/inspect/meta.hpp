// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/meta/dataset_meta.hpp>

namespace millrace::inspect {

/// The PREFIX.meta of a dataset, or nothing if there is none.
///
/// @throws io_error      it is there and cannot be read.
/// @throws format_error  it is none, or of another dataset: dtype or counts are not those of the
///                       `.idx`.
std::optional<formats::dataset_meta> find_meta(const dataset::indexed_dataset& data);

/// @param root  of PREFIX.sum, or nothing if there is none
/// @throws format_error  PREFIX.meta names another one.
void check_root(const dataset::indexed_dataset& data, const formats::dataset_meta& meta,
                const std::optional<std::string>& root);

/// Checks what needs a walk: the number of empty documents, and that counts add up.
///
/// @throws format_error  PREFIX.meta contradicts itself or the `.idx`.
void check_all_counts(const dataset::indexed_dataset& data, const formats::dataset_meta& meta);

/// Walks PREFIX.src; against `meta`, if that is there.
///
/// @return the number of inputs that it names; nothing if there is no PREFIX.src
/// @throws format_error  an entry of PREFIX.src contradicts itself or `meta`; or `meta` tells of a
///                       PREFIX.src, and there is none.
std::optional<std::int64_t> check_sources(const dataset::indexed_dataset& data,
                                          const std::optional<formats::dataset_meta>& meta);

/// The most important of it: lines of a name and a value.
std::vector<std::pair<const char*, std::string>> describe(const formats::dataset_meta& meta);

/// All of it, as the value of an entry.
void add_meta(formats::json_writer& json, const formats::dataset_meta& meta);

}  // namespace millrace::inspect
