// SPDX-License-Identifier: Apache-2.0
// Functions of newer glibc that the C++ runtime and g++'s headers call. With them, a vf-guest built
// here starts where glibc is 2.34 (RHEL 9): the newest symbol decides, and tests/packages checks
// it. They are hidden, so the VM's own libraries keep their glibc's.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <bit>
#include <cstdint>

namespace {

struct Search {
    std::uintptr_t address = 0;
    void* unwind_table = nullptr;  // of the object that contains the address
};

int inspect(dl_phdr_info* object, std::size_t, void* search_of_caller) {
    auto& search = *static_cast<Search*>(search_of_caller);
    bool inside = false;
    void* unwind_table = nullptr;
    for (auto i = 0; i < object->dlpi_phnum; ++i) {
        auto const& part = object->dlpi_phdr[i];
        auto const begin = object->dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && search.address - begin < part.p_memsz) inside = true;
        if (part.p_type == PT_GNU_EH_FRAME) unwind_table = std::bit_cast<void*>(begin);
    }
    if (inside) search.unwind_table = unwind_table;
    return inside ? 1 : 0;
}

}  // namespace

extern "C" {

// glibc 2.35. libgcc's unwinder reads only dlfo_eh_frame (unwind-dw2-fde-dip.c). Before 2.35 it
// searched for it in this way itself.
[[gnu::visibility("hidden")]] int _dl_find_object(void* address, dl_find_object* result) noexcept {
    Search search{reinterpret_cast<std::uintptr_t>(address), nullptr};
    ::dl_iterate_phdr(inspect, &search);
    if (!search.unwind_table) return -1;
    result->dlfo_eh_frame = search.unwind_table;
    return 0;
}

// glibc 2.36. For std::random_device, which libstdc++'s old strings bring along, used or not.
[[gnu::visibility("hidden")]] std::uint32_t arc4random() noexcept {
    std::uint32_t number = 0;
    while (::getrandom(&number, sizeof number, 0) != sizeof number) {
    }
    return number;
}

#if __GLIBC_PREREQ(2, 38)
// glibc 2.38, C23: these also parse 0b101, which no caller here passes. Forwards to the older
// names.
long older_strtol(char const*, char**, int) noexcept __asm__("strtol");
unsigned long older_strtoul(char const*, char**, int) noexcept __asm__("strtoul");
long long older_strtoll(char const*, char**, int) noexcept __asm__("strtoll");
unsigned long long older_strtoull(char const*, char**, int) noexcept __asm__("strtoull");

[[gnu::visibility("hidden")]] long __isoc23_strtol(char const* text, char** end,
                                                   int base) noexcept {
    return older_strtol(text, end, base);
}
[[gnu::visibility("hidden")]] unsigned long __isoc23_strtoul(char const* text, char** end,
                                                             int base) noexcept {
    return older_strtoul(text, end, base);
}
[[gnu::visibility("hidden")]] long long __isoc23_strtoll(char const* text, char** end,
                                                         int base) noexcept {
    return older_strtoll(text, end, base);
}
[[gnu::visibility("hidden")]] unsigned long long __isoc23_strtoull(char const* text, char** end,
                                                                   int base) noexcept {
    return older_strtoull(text, end, base);
}
#endif

}  // extern "C"
