"""Files of a house: whole or not at all, private, and one process at a time.

files    private folders, writes that survive a power cut, a full disk in one sentence
locks    one process at a time, also after a kill
"""
