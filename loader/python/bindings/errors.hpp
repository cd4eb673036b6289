// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::python {

/// Makes every `millrace::error` that leaves a bound function a Python exception of the class of
/// the same name (millrace/_errors.py).
void translate_errors();

}  // namespace millrace::python
