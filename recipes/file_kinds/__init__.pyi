from recipes.file_kinds.detection import FileDescription as FileDescription
from recipes.file_kinds.detection import describe_file as describe_file
