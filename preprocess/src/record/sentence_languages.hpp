// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace millrace::preprocess {

/// Returns the ICU locale of a language that `--lang` names, such as "de" for "german".
///
/// @throws config_error  there is no such language; the message lists the available ones.
std::string_view locale_of_language(std::string_view language);

}  // namespace millrace::preprocess
