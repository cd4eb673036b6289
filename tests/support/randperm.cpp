// SPDX-License-Identifier: Apache-2.0
//
// usage: randperm SEED SIZE ...
//
// For each size, prints one line about torch's permutation of that size: the size, the first four
// numbers and the MD5. tests/golden/dataset/torch/generate.py --wide prints the same lines.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <vector>

#include <millrace/dataset/detail/megatron/torch_random.hpp>
#include <millrace/formats/detail/md5.hpp>

int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    std::vector<std::int64_t> order(std::strtoull(argv[i], nullptr, 10));
    millrace::dataset::torch_randperm(std::strtoull(argv[1], nullptr, 10), std::span(order));
    std::cout << order.size() << " [";
    for (std::size_t k = 0; k < 4; ++k) std::cout << (k == 0 ? "" : ", ") << order.at(k);
    std::cout << "] " << millrace::formats::md5().update(std::as_bytes(std::span(order))).hex()
              << '\n';
  }
}
