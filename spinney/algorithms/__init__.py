"""The algorithms, one file each. A new file here is a new algorithm; nothing else changes.

Every file offers one `ALGORITHM`: its settings (with a `name`, which is the file's), its site's part and its
coordinator's program. `spinney.plugins` finds it, here or in another package.
"""
