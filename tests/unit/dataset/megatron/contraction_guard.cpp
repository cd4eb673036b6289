// SPDX-License-Identifier: Apache-2.0
//
// Tests the blend code of the header-only form. The test is compiled with -mfma -ffp-contract=fast
// -O3 if the compiler supports these flags. A user may compile with these flags. The code must
// still round twice: first the product, then the difference. The test also checks that these flags
// contract expressions at all.
//
// This is not a *_test.cpp file, because it must not be in one program with sources that are
// compiled with other flags: the linker keeps an arbitrary copy of each inline function.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include <millrace/dataset/detail/megatron/greedy_blend.hpp>
#include <millrace/dataset/detail/megatron/normalize.hpp>

#include "support/plain_blend.hpp"

// These files contain the functions that round. <millrace/header_only/loader.hpp> contains the same
// function bodies.
#define MILLRACE_INLINE inline
#include "megatron/greedy_blend.cpp"   // NOLINT: a body, of which this is the one user
#include "megatron/greedy_groups.cpp"  // NOLINT
#include "megatron/normalize.cpp"      // NOLINT

namespace {

using namespace millrace;
using test::blend_columns;

bool failed = false;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::cout << "FAILED: " << what << '\n';
  failed = true;
}

void compare(const std::vector<double>& weights, const blend_columns& twice,
             const blend_columns& fused) {
  using dataset::detail::greedy_kernel;
  for (const auto kernel : {greedy_kernel::plain, greedy_kernel::avx512}) {
    if (!dataset::detail::is_there(kernel)) continue;
    const char* const name = kernel == greedy_kernel::plain ? "plain" : "avx512";
    blend_columns ours(static_cast<std::int64_t>(twice.dataset_index.size()));
    for (const auto rounding : {dataset::blend_rounding::twice, dataset::blend_rounding::fused}) {
      dataset::detail::fill_blend_by(kernel, weights, {}, ours.span(), rounding);
      expect(ours == (rounding == dataset::blend_rounding::twice ? twice : fused), name);
    }
  }
}

}  // namespace

int main() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma") == 0) {
    std::cout << "skipped: this processor has no fused multiply-add\n";
    return 77;
  }
#endif
  std::mt19937_64 random(1);
  int contracted = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<double> weights(2 + random() % 120);
    for (double& weight : weights) weight = static_cast<double>(random() % 100 + 1);
    weights = dataset::normalize(dataset::normalize(weights));
    blend_columns twice(2000);
    blend_columns fused(2000);
    blend_columns naive(2000);
    test::fill_plain_blend(weights, {}, twice.span(), test::error_rounded_twice);
    test::fill_plain_blend(weights, {}, fused.span(), test::error_rounded_once);
    // The expression as written in Megatron's source.
    test::fill_plain_blend(weights, {}, naive.span(), [](double w, double position, double count) {
      return w * position - count;
    });
    contracted += naive == twice ? 0 : 1;
    compare(weights, twice, fused);
  }
  std::cout << contracted << " of 200 blends come out differently where a compiler contracts\n";
  expect(contracted > 50, "these flags were to contract products and differences");
  return failed ? 1 : 0;
}
