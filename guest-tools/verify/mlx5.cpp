// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/mlx5.hpp"

#include <fmt/format.h>

#include "guest-tools/verify/symbols.hpp"

namespace vfmgr::verify {

Result<Mlx5> open_mlx5(std::string const& library) {
    auto* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened) {
        char const* const why = ::dlerror();
        return fail({Problem::not_found,
                     fmt::format("{} can't be opened", library),
                     "install it: ibverbs-providers on Debian and Ubuntu, libibverbs on RHEL",
                     {{"dlopen", "", why ? why : "no reason given"}}});
    }
    Mlx5 mlx5;
    Symbols symbols(opened);
    symbols.need(mlx5.mlx5dv_is_supported, "mlx5dv_is_supported")
        .need(mlx5.mlx5dv_create_qp, "mlx5dv_create_qp")
        .need(mlx5.mlx5dv_qp_ex_from_ibv_qp_ex, "mlx5dv_qp_ex_from_ibv_qp_ex");
    if (symbols.missing().empty()) return mlx5;
    return fail(Problem::unsupported, fmt::format("{} has no {}", library, symbols.missing()),
                "install rdma-core 24 or newer");
}

Result<Mlx5> const& mlx5_here() {
    static auto const opened = open_mlx5();
    return opened;
}

}  // namespace vfmgr::verify
