// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -mfma -ffp-contract=fast -O3 where compilers know these: what an includer of a
// header library may do. The blend must still round twice; that the flags do contract here is
// checked too.
//
// Not a *_test.cpp: it must not share a program with sources compiled otherwise, as the linker
// would keep one copy of each inline function, of whichever.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include <millrace/dataset/megatron/greedy_blend.hpp>
#include <millrace/dataset/megatron/normalize.hpp>
#include <millrace/dataset/run/megatron_run.hpp>

#include "support/plain_blend.hpp"

namespace {

using namespace millrace;
using test::blend_columns;

bool failed = false;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::cout << "FAILED: " << what << '\n';
  failed = true;
}

template <class Kernel>
void compare(const std::vector<double>& weights, const blend_columns& twice,
             const blend_columns& fused, const char* name) {
  if (!Kernel::is_there()) return;
  blend_columns ours(static_cast<std::int64_t>(twice.dataset_index.size()));
  dataset::detail::run_greedy<Kernel>({weights, {}}, ours.span(), dataset::blend_rounding::twice);
  expect(ours == twice, name);
  dataset::detail::run_greedy<Kernel>({weights, {}}, ours.span(), dataset::blend_rounding::fused);
  expect(ours == fused, name);
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
    // Megatron's source as it stands.
    test::fill_plain_blend(weights, {}, naive.span(), [](double w, double position, double count) {
      return w * position - count;
    });
    contracted += naive == twice ? 0 : 1;
    compare<dataset::detail::plain_kernel>(weights, twice, fused, "plain_kernel");
#if defined(__x86_64__)
    compare<dataset::detail::avx512_kernel>(weights, twice, fused, "avx512_kernel");
#endif
  }
  std::cout << contracted << " of 200 blends come out differently where a compiler contracts\n";
  expect(contracted > 50, "these flags were to contract products and differences");
  return failed ? 1 : 0;
}
