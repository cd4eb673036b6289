// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::formats {

/// Empties a container and frees its memory. (`container = {}` keeps the memory of a vector,
/// because it assigns an empty list. Even `text = std::string()` keeps that of the string.)
template <class Container>
void free_memory(Container& container) {
  Container().swap(container);
}

}  // namespace millrace::formats
