// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include <millrace/meta/dataset_meta.hpp>

namespace millrace::formats {

/// All counts except bad_records and those below, in file order. The writer, the reader and the
/// concatenation share this list.
inline constexpr std::pair<const char*, std::int64_t meta_counts::*> count_fields[] = {
    {"documents", &meta_counts::documents},
    {"empty_documents", &meta_counts::empty_documents},
    {"sequences", &meta_counts::sequences},
    {"tokens", &meta_counts::tokens},
    {"lines", &meta_counts::lines},
    {"blank_lines", &meta_counts::blank_lines},
    {"lone_surrogates", &meta_counts::lone_surrogates},
    {"special_tokens", &meta_counts::special_tokens},
    {"text_bytes", &meta_counts::text_bytes},
};

/// Counts that few datasets have. A file has them only if they are not 0.
inline constexpr std::pair<const char*, std::int64_t meta_counts::*> rare_count_fields[] = {
    {"not_sampled", &meta_counts::not_sampled},
    {"duplicates", &meta_counts::duplicates},
    {"overlong", &meta_counts::overlong},
    {"truncated", &meta_counts::truncated},
};

}  // namespace millrace::formats
