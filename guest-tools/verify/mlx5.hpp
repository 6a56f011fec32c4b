// SPDX-License-Identifier: Apache-2.0
// The functions used of libmlx5.so.1, opened at run time: it serves one maker's NICs, so nothing
// links against it. It is never closed: libibverbs has the same file open as the devices' provider.
// Values; any thread.
#pragma once

#include <infiniband/mlx5dv.h>

#include <string>

#include "api/types/problem.hpp"

namespace vfmgr::verify {

inline constexpr char const* mlx5_library = "libmlx5.so.1";

// Members are named after the symbols.
struct Mlx5 {
    decltype(&::mlx5dv_is_supported) mlx5dv_is_supported = nullptr;
    decltype(&::mlx5dv_create_qp) mlx5dv_create_qp = nullptr;
    decltype(&::mlx5dv_qp_ex_from_ibv_qp_ex) mlx5dv_qp_ex_from_ibv_qp_ex = nullptr;
};

// Fails with not_found if it is not installed, with unsupported if it is too old to have all of
// them.
[[nodiscard]] Result<Mlx5> open_mlx5(std::string const& library = mlx5_library);

// This machine's library, opened on first use.
[[nodiscard]] Result<Mlx5> const& mlx5_here();

}  // namespace vfmgr::verify
