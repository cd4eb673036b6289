// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/changed_character.hpp"

namespace millrace::tokenizer::detail {

/// Unicode's normal forms, as of Unicode 9.0 (normalization_tables.hpp says why).
enum class normal_form : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// Normalizes `text`. If `text` is already in the form, returns `text` itself. Otherwise overwrites
/// `buffer` and returns a view of it.
///
/// Text that is already in the form is only scanned. Only the stretches that are not in the form
/// cost more.
///
/// @param text  valid UTF-8, not in `buffer`
/// @param made  called after about every 4 KiB of output, with the approximate number of bytes
///              written so far; may throw
std::string_view normalize_to(normal_form form, std::string_view text, std::string& buffer,
                              const std::function<void(std::size_t)>& made = {});

/// The characters of the normalized text, each with what it replaces in `text`: of several
/// characters that one decomposes to, the first replaces it. One that is composed of several
/// replaces all that these replace.
std::vector<changed_character> changes_of(normal_form form, std::string_view text);

/// The simple lower case of `point`, or `point` itself if it has none. `point` must not be U+0130,
/// whose lower case has two characters.
std::uint32_t lowercase_of(std::uint32_t point) noexcept;

}  // namespace millrace::tokenizer::detail
