// SPDX-License-Identifier: Apache-2.0
// Owning pointers to libvirt's objects. Any thread; releasing a connection may block.
#pragma once

#include <libvirt/libvirt.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace vfmgr {

template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* object) const noexcept {
        (void)Free(object);
    }
};
template <class T, auto Free>
using Handle = std::unique_ptr<T, Freed<Free>>;

using VirConnect = Handle<virConnect, virConnectClose>;
using VirDomain = Handle<virDomain, virDomainFree>;
using VirNetwork = Handle<virNetwork, virNetworkFree>;
using VirText = Handle<char, std::free>;

}  // namespace vfmgr
