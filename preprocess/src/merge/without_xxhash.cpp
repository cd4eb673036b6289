// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.hpp>

#include "merge/content_key.hpp"

namespace millrace::preprocess {

struct content_hasher::hash_state {};

content_hasher::content_hasher() {
  expect_xxhash();
}
content_hasher::~content_hasher() = default;

void content_hasher::add(std::span<const std::byte>) {}

content_key content_hasher::take() {
  return {};
}

bool has_xxhash() noexcept {
  return false;
}

std::string optional_xxhash() {
  return "without xxHash";
}

void expect_xxhash() {
  throw config_error(
      "--drop-duplicates ids: this build has no xxHash, which finds documents with equal ids; "
      "install it (Debian: libxxhash-dev), then configure and build again");
}

}  // namespace millrace::preprocess
