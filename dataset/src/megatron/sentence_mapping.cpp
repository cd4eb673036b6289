// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/megatron/sentence_mapping.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// How long samples are to be: mostly as long as they may, now and then of a length by chance.
class sentence_targets {
 public:
  explicit sentence_targets(const sentence_mapping_request& request)
      : most_(request.most_tokens), random_(request.seed) {
    const double chance = request.short_probability;
    if (!(chance >= 0 && chance <= 1)) {
      throw config_error("the probability of a short sample is " + std::to_string(chance) +
                         ", expected 0 to 1");
    }
    // Where it is hardly ever, it is never: Megatron's ratio is an int32.
    const double ratio = chance > 0 ? std::round(1 / chance) : 0;
    if (ratio <= std::numeric_limits<std::int32_t>::max())
      ratio_ = static_cast<std::uint32_t>(ratio);
    if (request.most_tokens < (ratio_ == 0 ? 1 : 2)) {
      throw config_error("samples of sentences are to have " + std::to_string(most_) +
                         " tokens, expected " + (ratio_ == 0 ? "1" : "2") + " or more");
    }
  }

  std::int32_t next() {
    if (ratio_ == 0) return most_;
    const auto drawn = static_cast<std::uint32_t>(random_());
    if (drawn % ratio_ != 0) return most_;
    return static_cast<std::int32_t>(2 + drawn % static_cast<std::uint32_t>(most_ - 1));
  }

 private:
  std::int32_t most_;
  std::uint32_t ratio_ = 0;
  std::mt19937 random_;
};

}  // namespace detail

MILLRACE_INLINE std::vector<sentence_run> map_sentences(std::span<const std::int64_t> documents,
                                                        std::span<const std::int32_t> lengths,
                                                        const sentence_mapping_request& request) {
  constexpr std::int32_t long_sentence = 512;
  detail::sentence_targets targets(request);
  std::vector<sentence_run> runs;
  const auto gather = [&](std::int64_t first, std::int64_t last) {
    std::int64_t begin = first;
    std::int64_t tokens = 0;
    std::int32_t target = targets.next();
    for (std::int64_t i = first; i < last; ++i) {
      tokens += lengths[static_cast<std::size_t>(i)];
      const std::int64_t left = last - i - 1;
      const bool full = tokens >= target && left > 1 && i + 1 - begin >= request.least_sentences;
      if (!full && left != 0) continue;
      runs.push_back({begin, i + 1, target});
      begin = i + 1;
      tokens = 0;
      target = targets.next();  // drawn behind the last sample, too
    }
  };
  for (std::int32_t epoch = 0; epoch < request.epochs; ++epoch) {
    if (static_cast<std::int64_t>(runs.size()) >= request.most_samples) break;
    const std::size_t before = runs.size();
    for (std::size_t d = 0; d + 1 < documents.size(); ++d) {
      const std::int64_t first = documents[d];
      const std::int64_t last = documents[d + 1];
      assert(0 <= first && first <= last && last <= static_cast<std::int64_t>(lengths.size()));
      if (last - first < request.least_sentences) continue;
      const auto begin = lengths.begin() + first;
      const bool has_long = std::any_of(begin, lengths.begin() + last,
                                        [](std::int32_t tokens) { return tokens > long_sentence; });
      if (last - first > 1 && has_long) continue;
      gather(first, last);
    }
    if (runs.size() == before) break;  // Megatron goes on, and finds nothing in any epoch either
  }
  std::mt19937_64 random(std::uint64_t{request.seed} + 1);
  for (std::size_t i = runs.size(); i-- > 1;) std::swap(runs[i], runs[random() % (i + 1)]);
  return runs;
}

}  // namespace millrace::dataset
