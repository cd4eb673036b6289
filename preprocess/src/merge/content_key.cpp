// SPDX-License-Identifier: Apache-2.0
#include "merge/content_key.hpp"

#include <cstdlib>
#include <new>

#include <fmt/format.h>
#include <xxhash.h>

namespace millrace::preprocess {
namespace {

// The bits of a hash that a key has. With few, tests give different documents equal keys.
std::uint64_t key_mask() {
  const char* text = std::getenv("MILLRACE_TEST_KEY_BITS");
  const auto bits = text != nullptr ? std::strtoul(text, nullptr, 10) : 64;
  return bits < 64 ? (std::uint64_t{1} << bits) - 1 : ~std::uint64_t{0};
}

}  // namespace

struct content_hasher::hash_state {
  hash_state() {
    if (all == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(all);
  }
  ~hash_state() { XXH3_freeState(all); }
  hash_state(const hash_state&) = delete;
  hash_state& operator=(const hash_state&) = delete;

  XXH3_state_t* all = XXH3_createState();
  std::uint64_t mask = key_mask();
};

content_hasher::content_hasher() : state_(std::make_unique<hash_state>()) {}
content_hasher::~content_hasher() = default;

void content_hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->all, bytes.data(), bytes.size());
}

content_key content_hasher::take() {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->all);
  XXH3_128bits_reset(state_->all);
  return {hash.high64 & state_->mask, hash.low64 & state_->mask};
}

bool has_xxhash() noexcept {
  return true;
}

std::string optional_xxhash() {
  const unsigned number = XXH_versionNumber();
  return fmt::format("xxHash {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

void expect_xxhash() {}

}  // namespace millrace::preprocess
