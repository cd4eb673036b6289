# SPDX-License-Identifier: Apache-2.0
inspect_dataset --version
