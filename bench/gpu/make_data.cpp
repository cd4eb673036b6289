// SPDX-License-Identifier: Apache-2.0
//
// Writes a dataset of random-looking tokens, for benchmarks on machines that have no datasets.
//
//   make_data PREFIX MILLIONS_OF_TOKENS u16|i32

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string_view>

#include "bench/gpu/made_data.hpp"

int main(int argc, char** argv) {
  const std::string_view width = argc == 4 ? argv[3] : "";
  const double millions = argc == 4 ? std::strtod(argv[2], nullptr) : 0;
  if ((width != "u16" && width != "i32") || !(millions > 0) || millions > 1e6) {
    std::cerr << "usage: make_data PREFIX MILLIONS_OF_TOKENS u16|i32\n";
    return 2;
  }
  try {
    millrace::bench::write_made_data(argv[1], std::llround(millions * 1e6), width == "i32");
  } catch (const std::exception& e) {
    std::cerr << "make_data: " << e.what() << '\n';
    return 1;
  }
}
